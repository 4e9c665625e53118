//! Tests of each operation, as a client sees it.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion,
};

use crate::client::{BUCKET, client, run, server};

fn create() -> object_store::PutOptions {
    PutMode::Create.into()
}

#[test]
fn objects_are_put_read_and_deleted() {
    let server = server();
    let client = client(&server);
    run(async {
        // Keys of partitioned tables may contain these characters.
        let key = Path::parse("t/p=a%20b/x y+z&é.parquet").unwrap();
        let put = client.put(&key, PutPayload::from_static(b"0123456789")).await.unwrap();
        assert_eq!(server.keys(BUCKET, ""), [key.to_string()]);
        assert_eq!(server.get_object(BUCKET, key.as_ref()).unwrap(), "0123456789");
        assert_eq!(put.e_tag.as_deref(), Some("\"781e5e245d69b566979b86e28d23f2c7\""));

        let head = client.head(&key).await.unwrap();
        assert_eq!((head.size, head.e_tag), (10, put.e_tag.clone()));
        assert_eq!(client.get(&key).await.unwrap().bytes().await.unwrap(), "0123456789");

        client.delete(&key).await.unwrap();
        assert!(matches!(client.head(&key).await, Err(Error::NotFound { .. })));
        assert!(matches!(client.get(&key).await, Err(Error::NotFound { .. })));
        // As on S3, deleting a missing object is not an error.
        client.delete(&key).await.unwrap();
    });
}

#[test]
fn ranges_are_exact() {
    let server = server();
    let client = client(&server);
    server.put_object(BUCKET, "a", "0123456789");
    server.put_object(BUCKET, "empty", "");
    run(async {
        let key = Path::from("a");
        let get = |range: GetRange| {
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            client.get_opts(&key, options)
        };
        for (range, expected, text) in [
            (GetRange::Bounded(2..5), 2..5, "234"),
            (GetRange::Bounded(8..99), 8..10, "89"),
            (GetRange::Offset(7), 7..10, "789"),
            (GetRange::Suffix(3), 7..10, "789"),
            (GetRange::Suffix(99), 0..10, "0123456789"),
        ] {
            let result = get(range).await.unwrap();
            assert_eq!((result.range.clone(), result.meta.size), (expected, 10));
            assert_eq!(result.bytes().await.unwrap(), text);
        }
        get(GetRange::Offset(10)).await.unwrap_err();
        let empty = GetOptions { range: Some(GetRange::Suffix(8)), ..GetOptions::default() };
        client.get_opts(&Path::from("empty"), empty).await.unwrap_err();
    });
    assert_eq!(server.requests().pop().unwrap().status, Some(416));
}

#[test]
fn reads_have_conditions() {
    let server = server();
    let client = client(&server);
    run(async {
        let key = Path::from("a");
        let old = client.put(&key, "old".into()).await.unwrap().e_tag;
        let is = GetOptions { if_match: old.clone(), ..GetOptions::default() };
        let is_not = GetOptions { if_none_match: old, ..GetOptions::default() };
        assert_eq!(client.get_opts(&key, is.clone()).await.unwrap().bytes().await.unwrap(), "old");
        let unchanged = client.get_opts(&key, is_not.clone()).await;
        assert!(matches!(unchanged, Err(Error::NotModified { .. })));

        client.put(&key, "new".into()).await.unwrap();
        let changed = client.get_opts(&key, is).await;
        assert!(matches!(changed, Err(Error::Precondition { .. })));
        assert_eq!(client.get_opts(&key, is_not).await.unwrap().bytes().await.unwrap(), "new");
    });
}

#[test]
fn writes_have_conditions() {
    let server = server();
    let client = client(&server);
    run(async {
        let key = Path::from("a");
        let first = client.put_opts(&key, "1".into(), create()).await.unwrap();
        let again = client.put_opts(&key, "2".into(), create()).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })));
        assert_eq!(server.get_object(BUCKET, "a").unwrap(), "1");

        let update = PutMode::Update(UpdateVersion::from(first));
        client.put_opts(&key, "3".into(), update.clone().into()).await.unwrap();
        let stale = client.put_opts(&key, "4".into(), update.clone().into()).await;
        assert!(matches!(stale, Err(Error::Precondition { .. })));
        assert_eq!(server.get_object(BUCKET, "a").unwrap(), "3");
        let missing = client.put_opts(&Path::from("b"), "5".into(), update.into()).await;
        assert!(matches!(missing, Err(Error::Precondition { .. })));
        assert_eq!(server.requests().pop().unwrap().status, Some(404));

        client.delete(&key).await.unwrap();
        client.put_opts(&key, "6".into(), create()).await.unwrap();
    });
}

#[test]
fn a_server_that_ignores_conditions_overwrites() {
    let server = server();
    server.set(|settings| settings.ignores_conditions = true);
    let client = client(&server);
    run(async {
        let key = Path::from("a");
        client.put_opts(&key, "1".into(), create()).await.unwrap();
        client.put_opts(&key, "2".into(), create()).await.unwrap();
    });
    assert_eq!(server.get_object(BUCKET, "a").unwrap(), "2");
}

#[test]
fn listings_go_page_by_page() {
    let server = server();
    let client = client(&server);
    let content = Bytes::from_static(b"123");
    server.fill(BUCKET, (0..2500).map(|number| (format!("t/{number:05}"), content.clone())));
    server.put_object(BUCKET, "u/x", "");
    run(async {
        let prefix = Path::from("t");
        let found: Vec<_> = client.list(Some(&prefix)).try_collect().await.unwrap();
        let keys: Vec<_> = found.iter().map(|meta| meta.location.to_string()).collect();
        assert_eq!(keys, server.keys(BUCKET, "t/"));
        assert!(found.iter().all(|meta| meta.size == 3 && meta.e_tag.is_some()));
        assert_eq!(server.take_requests().len(), 3);

        let after = Path::from("t/01499");
        let found: Vec<_> = client.list_with_offset(Some(&prefix), &after).try_collect().await.unwrap();
        assert_eq!(found.len(), 1000);
        assert_eq!(found[0].location.as_ref(), "t/01500");
        assert_eq!(server.take_requests().len(), 1);

        let root = client.list_with_delimiter(None).await.unwrap();
        assert_eq!(root.common_prefixes, [Path::from("t"), Path::from("u")]);
        assert!(root.objects.is_empty());
        // Common prefixes count as entries, and the keys below them do not take up pages.
        assert_eq!(server.take_requests().len(), 1);

        server.set(|settings| settings.page_size = 500);
        assert_eq!(client.list(Some(&prefix)).count().await, 2500);
        assert_eq!(server.take_requests().len(), 5);
    });
}

#[test]
fn many_objects_are_deleted_in_one_request() {
    let server = server();
    let client = client(&server);
    server.fill(BUCKET, (0..10).map(|number| (format!("t/{number} é&"), Bytes::new())));
    let keys: Vec<_> = server.keys(BUCKET, "");
    run(async {
        let paths = keys.iter().take(9).map(|key| Ok(Path::parse(key).unwrap()));
        let paths: Vec<_> = paths.chain([Ok(Path::from("missing"))]).collect();
        let deleted = client.delete_stream(futures::stream::iter(paths).boxed());
        assert_eq!(deleted.try_collect::<Vec<_>>().await.unwrap().len(), 10);
    });
    let request = server.requests().pop().unwrap();
    assert_eq!(server.keys(BUCKET, ""), keys[9..], "{request:?}");
    assert_eq!(request.number, 1);
}
