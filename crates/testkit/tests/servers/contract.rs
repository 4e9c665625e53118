//! Runs the tests that `object_store` has for its own clients. The servers pass them, except for the ones named here.

use deltalog_testkit::servers::{Azurite, FakeGcs, VersityGw};
use futures::TryStreamExt;
use object_store::integration::{
    get_opts, list_paginated, list_uses_directories_correctly, list_with_delimiter,
    list_with_offset_exclusivity, multipart, multipart_out_of_order, put_get_delete_list, put_opts,
    stream_get,
};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;

use crate::stores;

/// versitygw compares `If-Unmodified-Since`, which is in whole seconds, with more precise times, so `get_opts` fails.
#[test]
fn versitygw_keeps_the_contract_of_object_store() {
    let server = VersityGw::start();
    server.create_bucket("contract");
    let store = stores::s3(&server, "contract");
    Runtime::new().unwrap().block_on(async {
        put_get_delete_list(&*store).await;
        list_with_offset_exclusivity(&*store).await;
        keeps_the_contract(&*store).await;
    });
}

/// Azurite does not support `startFrom`: a listing with an offset starts from the beginning, so two tests fail.
#[test]
fn azurite_keeps_the_contract_of_object_store() {
    let server = Azurite::start();
    server.create_bucket("contract");
    let store = stores::azure(&server, "contract");
    Runtime::new().unwrap().block_on(async {
        keeps_the_contract(&*store).await;
        get_opts(&*store).await;
        for name in ["a", "b"] {
            store.put(&Path::from(name), name.into()).await.unwrap();
        }
        let listed = store.list_with_offset(None, &Path::from("b")).map_ok(|meta| meta.location.to_string());
        let listed: Vec<_> = listed.try_collect().await.unwrap();
        assert!(listed.contains(&"a".to_owned()), "Azurite knows the offset of a listing now: {listed:?}");
    });
}

/// fake-gcs-server ignores the conditions of reads, so `get_opts` fails.
#[test]
fn fake_gcs_server_keeps_the_contract_of_object_store() {
    let server = FakeGcs::start();
    server.create_bucket("contract");
    let store = stores::gcs(&server, "contract");
    Runtime::new().unwrap().block_on(async {
        put_get_delete_list(&*store).await;
        list_with_offset_exclusivity(&*store).await;
        keeps_the_contract(&*store).await;
    });
}

async fn keeps_the_contract<S: ObjectStore + MultipartStore + PaginatedListStore>(store: &S) {
    put_opts(store, true).await;
    // The next test expects an empty bucket.
    for name in ["RACE", "put_opts"] {
        store.delete(&Path::from(name)).await.unwrap();
    }
    stream_get(store).await;
    list_uses_directories_correctly(store).await;
    list_with_delimiter(store).await;
    list_paginated(store, store).await;
    multipart(store, store).await;
    multipart_out_of_order(store).await;
}
