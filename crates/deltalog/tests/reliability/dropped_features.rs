//! Dropping a feature of readers from a log that is cleaned up meanwhile, or that has a gap. Protocol: "Supported
//! Features", "Metadata Cleanup".

use std::ops::Range;
use std::thread;

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::log::name::LogFileName;
use deltalog::engine::transaction::Committed;
use deltalog::{ErrorKind, Result, Snapshot, Storage, TableChange, alter_table};

use crate::common::store::{FaultyStore, Op};
use crate::common::{add_line, empty, environment, metadata_line, storage_in, write_commit};

/// Creates a log whose versions in `using` make use of the feature. Their first commit and the one after them say so;
/// the other commits add files.
fn log(versions: u64, using: Range<u64>) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let protocol = concat!(
        r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"#,
        r#""readerFeatures":["typeWidening"],"writerFeatures":["typeWidening"]}}"#
    );
    let metadata = |is_used: bool| {
        let property = is_used.then(|| ("delta.enableTypeWidening".to_owned(), "true".to_owned()));
        metadata_line(&property.into_iter().collect())
    };
    write_commit(&storage, 0, &[protocol.to_owned(), metadata(false)]);
    for version in 1..versions {
        let line = match version {
            _ if version == using.start => metadata(true),
            _ if version == using.end => metadata(false),
            _ => add_line(&format!("{version}.parquet")),
        };
        write_commit(&storage, version, &[line]);
    }
    (store, storage)
}

fn checkpoint(storage: &Storage, version: u64) {
    write_checkpoint(&Snapshot::open(storage, Some(version)).unwrap(), &environment()).unwrap();
}

fn delete_commits(storage: &Storage, versions: impl IntoIterator<Item = u64>) {
    versions.into_iter().for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
}

fn drop_feature(base: &Snapshot) -> Result<Option<Committed>> {
    let change = TableChange::DropFeature("typeWidening".to_owned());
    alter_table(base, &change, Default::default(), &environment())
}

/// Checks that the feature is kept because of `version`.
fn assert_kept(base: &Snapshot, version: u64) {
    let error = drop_feature(base).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains(&format!("version {version} of the table")), "{error}");
    assert_eq!(base.refresh().unwrap().version(), base.version());
}

/// A checkpoint holds what commits said that a clean-up deletes while they are read.
#[test]
fn a_clean_up_meanwhile_hides_nothing() {
    let (store, storage) = log(5, 1..3);
    checkpoint(&storage, 2);
    let base = Snapshot::open(&storage, None).unwrap();
    let other = storage_in(&store.reconnect());
    let first = LogFileName::Commit(1).path();
    let mut is_cleaned_up = false;
    store.fail(move |_, call| {
        if !is_cleaned_up && call.op == Op::Get && call.path.ends_with(&first) {
            is_cleaned_up = true;
            let other = other.clone();
            thread::spawn(move || delete_commits(&other, 0..2)).join().unwrap();
        }
        None
    });
    assert_kept(&base, 2);
    store.heal();
    assert!(storage.head(&LogFileName::Commit(1).path()).unwrap().is_none());
    // The log of before is gone.
    checkpoint(&storage, 4);
    delete_commits(&storage, 2..4);
    storage.delete(&LogFileName::ClassicCheckpoint(2).path()).unwrap();
    assert_eq!(drop_feature(&base).unwrap().unwrap().version, 5);
    assert_eq!(Snapshot::open(&storage, None).unwrap().protocol().min_reader_version, 1);
}

/// What the missing commits above an old checkpoint said is in the next one.
#[test]
fn a_gap_hides_nothing() {
    let (_, storage) = log(8, 3..5);
    checkpoint(&storage, 1);
    checkpoint(&storage, 4);
    delete_commits(&storage, [0, 2, 3]);
    assert_kept(&Snapshot::open(&storage, None).unwrap(), 4);
}
