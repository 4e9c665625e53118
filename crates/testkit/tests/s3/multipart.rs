//! Tests of multipart uploads.

use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStoreExt, PutPayload};

use crate::client::{BUCKET, client, run, server};

const PART: usize = 5 << 20;

fn part(byte: u8, size: usize) -> PutPayload {
    vec![byte; size].into()
}

#[test]
fn parts_become_one_object_when_the_upload_is_completed() {
    let server = server();
    let client = client(&server);
    run(async {
        let key = Path::from("a");
        let mut upload = client.put_multipart(&key).await.unwrap();
        let parts = [upload.put_part(part(1, PART)), upload.put_part(part(2, 3))];
        futures::future::try_join_all(parts).await.unwrap();
        assert_eq!(server.open_uploads(BUCKET), ["a"]);
        assert!(server.keys(BUCKET, "").is_empty());
        let put = upload.complete().await.unwrap();
        assert!(put.e_tag.unwrap().ends_with("-2\""));
    });
    assert!(server.open_uploads(BUCKET).is_empty());
    let content = server.get_object(BUCKET, "a").unwrap();
    assert_eq!((content.len(), &content[PART - 1..]), (PART + 3, [1, 2, 2, 2].as_slice()));
}

#[test]
fn an_aborted_upload_leaves_nothing() {
    let server = server();
    let client = client(&server);
    run(async {
        let key = Path::from("a");
        let mut upload = client.put_multipart(&key).await.unwrap();
        upload.put_part(part(1, PART)).await.unwrap();
        upload.abort().await.unwrap();
        assert!(server.open_uploads(BUCKET).is_empty() && server.keys(BUCKET, "").is_empty());
        upload.complete().await.unwrap_err();
    });
    assert_eq!(server.requests().pop().unwrap().status, Some(404));
}

#[test]
fn parts_are_checked() {
    let server = server();
    let client = client(&server);
    run(async {
        let key = Path::from("a");
        let id = client.create_multipart(&key).await.unwrap();
        let small = client.put_part(&key, &id, 0, part(1, 10)).await.unwrap();
        let last = client.put_part(&key, &id, 1, part(2, 10)).await.unwrap();
        let swapped = vec![last.clone(), small.clone()];
        let complete = |parts| client.complete_multipart(&key, &id, parts);
        for (parts, code) in [
            (vec![small.clone(), last.clone()], "EntityTooSmall"),
            (swapped, "InvalidPart"),
            (vec![small.clone(), last.clone(), last.clone()], "InvalidPart"),
        ] {
            let error = complete(parts).await.unwrap_err().to_string();
            assert!(error.contains(code), "{error}");
        }
        server.set(|settings| settings.minimum_part = 0);
        complete(vec![small, last]).await.unwrap();
        assert_eq!(server.get_object(BUCKET, "a").unwrap().len(), 20);
        let gone = client.put_part(&key, &id, 2, part(1, 10)).await;
        assert!(matches!(gone, Err(Error::NotFound { .. })));
    });
}
