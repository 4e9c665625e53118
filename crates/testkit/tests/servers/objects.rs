//! Tests of ranges of objects, abandoned uploads, and deletions of many objects.

use deltalog_testkit::servers::{Azurite, FakeGcs, VersityGw};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;

use crate::stores;

#[test]
fn versitygw() {
    let server = VersityGw::start();
    server.create_bucket("objects");
    let store = stores::s3(&server, "objects");
    Runtime::new().unwrap().block_on(async {
        parts_are_read(&*store).await;
        assert_eq!(part(&*store, GetRange::Suffix(3)).await.unwrap(), "789");
        an_upload_that_was_given_up_leaves_nothing(&*store).await;
        many_are_deleted(&*store).await;
    });
}

/// Azure itself does not support ranges that are suffixes.
#[test]
fn azurite() {
    let server = Azurite::start();
    server.create_bucket("objects");
    let store = stores::azure(&server, "objects");
    Runtime::new().unwrap().block_on(async {
        parts_are_read(&*store).await;
        let error = part(&*store, GetRange::Suffix(3)).await.unwrap_err();
        assert!(matches!(error, object_store::Error::NotSupported { .. }), "{error:?}");
        an_upload_that_was_given_up_leaves_nothing(&*store).await;
        many_are_deleted(&*store).await;
    });
}

#[test]
fn fake_gcs_server() {
    let server = FakeGcs::start();
    server.create_bucket("objects");
    let store = stores::gcs(&server, "objects");
    Runtime::new().unwrap().block_on(async {
        parts_are_read(&*store).await;
        assert_eq!(part(&*store, GetRange::Suffix(3)).await.unwrap(), "789");
        an_upload_that_was_given_up_leaves_nothing(&*store).await;
        many_are_deleted(&*store).await;
    });
}

async fn parts_are_read(store: &dyn ObjectStore) {
    store.put(&Path::from("digits"), "0123456789".into()).await.unwrap();
    assert_eq!(part(store, GetRange::Bounded(2..5)).await.unwrap(), "234");
    assert_eq!(part(store, GetRange::Bounded(8..100)).await.unwrap(), "89");
    assert_eq!(part(store, GetRange::Offset(7)).await.unwrap(), "789");
    let error = part(store, GetRange::Bounded(10..12)).await.unwrap_err();
    assert!(!matches!(error, object_store::Error::NotFound { .. }), "{error:?}");
    let parts = store.get_ranges(&Path::from("digits"), &[0..1, 9..10]).await.unwrap();
    assert_eq!(parts, ["0", "9"]);
}

async fn part(store: &dyn ObjectStore, range: GetRange) -> object_store::Result<String> {
    let options = GetOptions { range: Some(range), ..GetOptions::default() };
    let bytes = store.get_opts(&Path::from("digits"), options).await?.bytes().await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

async fn an_upload_that_was_given_up_leaves_nothing(store: &dyn ObjectStore) {
    let path = Path::from("upload/file");
    // Azure has no request that aborts an upload, and deletes the parts after a week.
    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part(vec![0; 5 << 20].into()).await.unwrap();
    upload.abort().await.unwrap();
    let error = store.head(&path).await.unwrap_err();
    assert!(matches!(error, object_store::Error::NotFound { .. }), "{error:?}");
    let prefix = Path::from("upload");
    assert_eq!(store.list(Some(&prefix)).try_collect::<Vec<_>>().await.unwrap(), []);
}

async fn many_are_deleted(store: &dyn ObjectStore) {
    let paths: Vec<Path> = (0..30).map(|number| Path::from(format!("many/a = b %20 ä {number}"))).collect();
    for path in &paths {
        store.put(path, "x".into()).await.unwrap();
    }
    let (prefix, gone) = (Path::from("many"), stream::iter(paths.clone()).map(Ok).boxed());
    assert_eq!(store.list(Some(&prefix)).count().await, 30);
    let deleted: Vec<Path> = store.delete_stream(gone).try_collect().await.unwrap();
    assert_eq!(deleted.len(), 30);
    assert_eq!(store.list(Some(&prefix)).count().await, 0);
}
