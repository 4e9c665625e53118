//! Tables that a catalog manages. Protocol: the table feature `catalogManaged`.

use std::collections::BTreeMap;

use deltalog::engine::log::StagedCommit;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{ErrorKind, Snapshot, Storage};
use uuid::Uuid;

use crate::common::{add_line, empty, metadata_line, paths, write_commit};

const PROTOCOL: &str = concat!(
    r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["catalogManaged"],"#,
    r#""writerFeatures":["catalogManaged","inCommitTimestamp"]}}"#,
);

fn stamped(version: u64) -> String {
    format!(r#"{{"commitInfo":{{"inCommitTimestamp":{}}}}}"#, 1000 * version)
}

fn lines(version: u64) -> Vec<String> {
    vec![stamped(version), add_line(&format!("{version}.parquet"))]
}

/// Creates a table whose versions 0 and 1 are published.
fn managed() -> Storage {
    let (_, storage) = empty();
    let properties = BTreeMap::from([("delta.enableInCommitTimestamps".to_owned(), "true".to_owned())]);
    write_commit(&storage, 0, &[stamped(0), PROTOCOL.to_owned(), metadata_line(&properties)]);
    write_commit(&storage, 1, &lines(1));
    storage
}

fn stage(storage: &Storage, version: u64) -> StagedCommit {
    let path = LogFileName::StagedCommit { version, uuid: Uuid::from_u128(version.into()) }.path();
    storage.put(&path, lines(version).join("\n").into()).unwrap();
    StagedCommit::file(&path).unwrap()
}

fn open(storage: &Storage, staged: impl IntoIterator<Item = StagedCommit>) -> deltalog::Result<Snapshot> {
    Snapshot::builder(storage).staged_commits(staged).open()
}

#[test]
fn managed_tables_are_read_only_with_their_staged_commits() {
    let storage = managed();
    let error = Snapshot::open(&storage, None).map(|snapshot| snapshot.version()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("catalogManaged")
            && error.hint().is_some_and(|hint| hint.contains("catalog")),
        "{error}"
    );
    let (two, three) = (stage(&storage, 2), StagedCommit::inline(3, lines(3).join("\n")));
    // The catalog has not accepted this commit.
    stage(&storage, 4);
    assert_eq!(open(&storage, []).unwrap().version(), 1);
    let snapshot = open(&storage, [three.clone(), two.clone()]).unwrap();
    assert_eq!(
        (snapshot.version(), paths(&snapshot)),
        (3, vec!["1.parquet".to_owned(), "2.parquet".to_owned(), "3.parquet".to_owned()])
    );
    assert_eq!(snapshot.timestamp_ms().unwrap(), 3000);
    assert_eq!(snapshot.history(None).unwrap().len(), 4);
    assert_eq!(snapshot.commit_actions(2, None).unwrap().count(), 2);
    let at = |time| {
        Snapshot::builder(&storage).staged_commits([two.clone(), three.clone()]).timestamp_ms(time).open()
    };
    assert_eq!(at(2500).unwrap().version(), 2);
    assert_eq!(Snapshot::builder(&storage).staged_commits([two]).version(0).open().unwrap().version(), 0);
}

#[test]
fn staged_commits_that_were_published_are_read_from_the_log() {
    let storage = managed();
    let staged = [stage(&storage, 2), stage(&storage, 3)];
    write_commit(&storage, 2, &lines(2));
    storage.delete(&staged[0].path()).unwrap();
    assert_eq!(open(&storage, staged.clone()).unwrap().version(), 3);
    storage.delete(&staged[1].path()).unwrap();
    let error = open(&storage, staged).map(|snapshot| snapshot.version()).unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::FileNotFound, Some(3)), "{error}");
}

#[test]
fn a_snapshot_refreshes_with_the_commits_of_the_catalog() {
    let storage = managed();
    let mut held = open(&storage, []).unwrap();
    for version in 2..6 {
        held = held.refresh_with([stage(&storage, version)]).unwrap();
        assert_eq!(held.version(), version);
        assert_eq!(held.refresh_with([]).unwrap().version(), version, "a snapshot never goes back");
        write_commit(&storage, version, &lines(version));
    }
    assert_eq!(paths(&held.refresh().unwrap()).len(), 5);
}

#[test]
fn inconsistent_staged_commits_are_refused() {
    let storage = managed();
    let error =
        open(&storage, [StagedCommit::inline(2, "x"), StagedCommit::inline(2, "y")]).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = open(&storage, [stage(&storage, 4)]).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(2)), "a gap");
    let (_, plain) = empty();
    crate::common::write_log(&plain, 2);
    let error = open(&plain, [StagedCommit::inline(2, lines(2).join("\n"))]).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert_eq!(open(&plain, []).unwrap().version(), 1);
}
