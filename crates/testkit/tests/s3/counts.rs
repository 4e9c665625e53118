//! Tests of the requests that a server records.

use bytes::Bytes;
use deltalog_testkit::s3::{Kind, count};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use crate::client::{BUCKET, client, run, server};

#[test]
fn each_request_is_recorded_with_its_kind_key_and_sizes() {
    let server = server();
    let client = client(&server);
    run(async {
        let (a, b) = (Path::from("t/a"), Path::from("t/b c"));
        let put = client.put(&a, "12345".into()).await.unwrap();
        client.put_opts(&b, "123".into(), PutMode::Create.into()).await.unwrap();
        let update = PutOptions::from(PutMode::Update(put.into()));
        client.put_opts(&a, "1234567".into(), update).await.unwrap();
        client.head(&a).await.unwrap();
        client.get(&a).await.unwrap().bytes().await.unwrap();
        client.get_range(&a, 2..4).await.unwrap();
        client.list(Some(&Path::from("t"))).try_collect::<Vec<_>>().await.unwrap();
        let mut upload = client.put_multipart(&a).await.unwrap();
        upload.put_part("12".into()).await.unwrap();
        upload.complete().await.unwrap();
        client.put_multipart(&a).await.unwrap().abort().await.unwrap();
        let both = futures::stream::iter([Ok(a), Ok(b)]).boxed();
        client.delete_stream(both).try_collect::<Vec<_>>().await.unwrap();
    });
    let requests = server.take_requests();
    let seen: Vec<_> = requests
        .iter()
        .map(|request| {
            (request.kind, request.key.as_str(), request.status.unwrap(), request.range.as_deref())
        })
        .collect();
    assert_eq!(
        seen,
        [
            (Kind::Put, "t/a", 200, None),
            (Kind::Create, "t/b c", 200, None),
            (Kind::Update, "t/a", 200, None),
            (Kind::Head, "t/a", 200, None),
            (Kind::Get, "t/a", 200, None),
            (Kind::Get, "t/a", 206, Some("bytes=2-3")),
            (Kind::List, "t/", 200, None),
            (Kind::CreateUpload, "t/a", 200, None),
            (Kind::UploadPart, "t/a", 200, None),
            (Kind::CompleteUpload, "t/a", 200, None),
            (Kind::CreateUpload, "t/a", 200, None),
            (Kind::AbortUpload, "t/a", 204, None),
            (Kind::DeleteMany, "t/a\nt/b c", 200, None),
        ]
    );
    let sizes: Vec<_> = requests.iter().take(6).map(|seen| (seen.bytes_in, seen.bytes_out)).collect();
    assert_eq!(sizes, [(5, 0), (3, 0), (7, 0), (0, 0), (0, 7), (0, 2)]);
    assert!(requests.iter().all(|request| request.bucket == BUCKET && request.rules.is_empty()));
    assert!(requests.iter().map(|request| request.number).eq(1..=13));
    assert_eq!(count(&requests, Kind::Get), 2);
    assert!(server.requests().is_empty());
}

/// Benchmarks fill a server with this number of objects.
#[test]
fn many_objects_are_filled_in_quickly() {
    let server = server();
    let content = Bytes::from_static(b"content");
    server.fill(BUCKET, (0..100_000).map(|number| (format!("t/part-{number:06}"), content.clone())));
    assert_eq!(
        server.keys(BUCKET, "t/part-09999"),
        (99_990..100_000).map(|n| format!("t/part-{n:06}")).collect::<Vec<_>>()
    );
    assert!(server.requests().is_empty());
}
