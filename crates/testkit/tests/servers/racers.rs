//! Tests in which many clients write an object under a condition at the same time: exactly one of them succeeds. The
//! commits of tables depend on this.

use std::sync::Arc;

use deltalog_testkit::servers::{Azurite, FakeGcs, VersityGw};
use futures::future::join_all;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use tokio::runtime::Runtime;

use crate::stores;

/// The number of rounds, and the smaller number for quick tests.
const ROUNDS: usize = 200;
const QUICK_ROUNDS: usize = 50;
const RACERS: usize = 16;

#[test]
fn versitygw_has_one_winner() {
    let server = VersityGw::start();
    server.create_bucket("races");
    race(stores::s3(&server, "races"));
}

#[test]
fn azurite_has_one_winner() {
    let server = Azurite::start();
    server.create_bucket("races");
    race(stores::azure(&server, "races"));
}

#[test]
fn fake_gcs_server_has_one_winner() {
    let server = FakeGcs::start();
    server.create_bucket("races");
    race(stores::gcs(&server, "races"));
}

fn race(store: Arc<dyn ObjectStore>) {
    let is_quick = std::env::var("DELTALOG_TESTS").is_ok_and(|which| which == "quick");
    let rounds = if is_quick { QUICK_ROUNDS } else { ROUNDS };
    Runtime::new().unwrap().block_on(async {
        for round in 0..rounds {
            let path = Path::from(format!("_delta_log/{round:020}.json"));
            create(&store, &path).await;
            replace(&store, &path).await;
        }
    });
}

/// Creates an object if it does not exist.
async fn create(store: &Arc<dyn ObjectStore>, path: &Path) {
    let outcomes = put_at_once(store, path, &PutMode::Create, "created").await;
    let winner = the_winner(&outcomes, |error| matches!(error, Error::AlreadyExists { .. }));
    assert_eq!(read(store, path).await, format!("created {winner}"));
}

/// Replaces the object that all clients have read, if it has not changed.
async fn replace(store: &Arc<dyn ObjectStore>, path: &Path) {
    let meta = store.head(path).await.unwrap();
    let version = object_store::UpdateVersion { e_tag: meta.e_tag, version: meta.version };
    let outcomes = put_at_once(store, path, &PutMode::Update(version), "replaced").await;
    let winner = the_winner(&outcomes, |error| matches!(error, Error::Precondition { .. }));
    assert_eq!(read(store, path).await, format!("replaced {winner}"));
}

async fn put_at_once(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    mode: &PutMode,
    word: &str,
) -> Vec<object_store::Result<()>> {
    let racers = (0..RACERS).map(|racer| {
        let (store, path, mode) = (Arc::clone(store), path.clone(), mode.clone());
        let payload = PutPayload::from(format!("{word} {racer}"));
        tokio::spawn(async move { store.put_opts(&path, payload, mode.into()).await.map(drop) })
    });
    join_all(racers).await.into_iter().map(Result::unwrap).collect()
}

/// Returns the number of the client that won. All others must have received an error that says that they lost.
fn the_winner(outcomes: &[object_store::Result<()>], lost: impl Fn(&Error) -> bool) -> usize {
    let mut winners = Vec::new();
    for (racer, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(()) => winners.push(racer),
            Err(error) => assert!(lost(error), "{error:?}"),
        }
    }
    let [winner] = winners[..] else { panic!("the winners are {winners:?}") };
    winner
}

async fn read(store: &Arc<dyn ObjectStore>, path: &Path) -> String {
    let bytes = store.get(path).await.unwrap().bytes().await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}
