//! Checkpoints that are written while the table is dropped, replaced or cleaned up, or while other writers write
//! checkpoints. Protocol: "Checkpoints", "Last Checkpoint File", "Metadata Cleanup".

use std::collections::BTreeMap;

use deltalog::engine::checkpoint::{write_checkpoint, write_checkpoint_within};
use deltalog::engine::log::LOG_DIRECTORY;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Environment, ErrorKind, Snapshot, Storage};

use super::written_checkpoints::{
    hint, limits, open, other_files, small, v2_metadata, v2_protocol, v2_table,
};
use crate::common::store::Op;
use crate::common::{
    add_line, empty, environment, first_lines, paths, replace_table, storage_in, write_commit,
};

/// The writer that writes the hint last does not always have the newest checkpoint.
#[test]
fn the_hint_does_not_name_an_older_checkpoint_after_a_race() {
    for has_hint in [false, true] {
        let (store, storage) = empty();
        crate::common::write_log(&storage, 30);
        if has_hint {
            write_checkpoint(&Snapshot::open(&storage, Some(5)).unwrap(), &environment()).unwrap();
        }
        let older = Snapshot::open(&storage, Some(10)).unwrap();
        let newer = Snapshot::open(&storage_in(&store.reconnect()), Some(20)).unwrap();
        // The newer writer reads and writes the hint between the older writer's read and write.
        let mut newer = Some(newer);
        store.fail(move |_, call| {
            if matches!(call.op, Op::Create | Op::Put) && call.path.ends_with("_last_checkpoint") {
                let write = |newer: Snapshot| write_checkpoint(&newer, &environment()).unwrap();
                newer
                    .take()
                    .into_iter()
                    .for_each(|newer| std::thread::spawn(move || write(newer)).join().unwrap());
            }
            None
        });
        write_checkpoint(&older, &environment()).unwrap();
        assert!(storage.head(&LogFileName::ClassicCheckpoint(20).path()).unwrap().is_some());
        assert_eq!(hint(&storage).version, 20, "with a hint before: {has_hint}");
    }
}

/// A program may delete a table right after a commit, when the checkpoint in the background has already checked for
/// the last time that the table exists.
#[test]
fn a_checkpoint_does_not_bring_a_deleted_table_back() {
    let plain = || first_lines(&BTreeMap::new());
    let v2 = || vec![v2_protocol(), v2_metadata(&[])];
    for (first, limits) in [(plain(), small()), (v2(), small()), (v2(), limits(0, 100, 2))] {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("table");
        std::fs::create_dir_all(root.join(LOG_DIRECTORY)).unwrap();
        let storage = Storage::open(root.to_str().unwrap(), []).unwrap();
        write_commit(&storage, 0, &first);
        write_commit(&storage, 1, &["a", "b", "c"].map(add_line));
        let snapshot = open(&storage);
        std::fs::remove_dir_all(&root).unwrap();
        let error = write_checkpoint_within(&snapshot, &limits, &environment()).unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && !root.exists(), "{error}");
    }
}

/// Files that a killed writer has left in the log's directory have no effect.
#[test]
fn leftovers_of_killed_writers_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let log = directory.path().join(LOG_DIRECTORY);
    std::fs::create_dir_all(log.join("_sidecars")).unwrap();
    write_commit(&storage, 0, &[v2_protocol(), v2_metadata(&[])]);
    for version in 1..12 {
        write_commit(&storage, version, &[add_line(&version.to_string())]);
    }
    for name in [
        ".00000000000000000010.checkpoint.parquet.5e2c4e3a-0000-4000-8000-000000000000.tmp",
        "_sidecars/5e2c4e3a-0000-4000-8000-000000000000.parquet",
    ] {
        std::fs::write(log.join(name), "PAR1").unwrap();
    }
    assert_eq!(paths(&open(&storage)).len(), 11);
    let environment = Environment::system();
    for version in [5, 10, 11] {
        write_checkpoint_within(&Snapshot::open(&storage, Some(version)).unwrap(), &small(), &environment)
            .unwrap();
    }
    (0..=11).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
    assert_eq!(paths(&open(&storage)).len(), 11);
    // A writer deletes the files of its own failed attempts.
    assert_eq!(
        std::fs::read_dir(&log)
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp") })
            .count(),
        1
    );
}

/// A table is dropped and another one created while sidecars are written. If the top-level file were written
/// afterwards, files of the old table would belong to a version of the new one.
#[test]
fn no_head_is_written_into_the_log_of_another_table() {
    let (store, storage) = v2_table(100);
    let snapshot = open(&storage);
    let other = storage_in(&store.reconnect());
    store.fail(move |_, call| {
        if call.path.contains("_sidecars") && matches!(call.op, Op::Put | Op::Create) {
            // This runs on another thread, because the current thread is in the middle of a request.
            std::thread::scope(|scope| scope.spawn(|| replace_table(&other, 5)).join().unwrap());
        }
        None
    });
    let error = write_checkpoint_within(&snapshot, &small(), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableReplaced);
    store.heal();
    assert!(other_files(&storage).iter().all(|name| name.starts_with("_sidecars/")));
}

/// A clean-up may happen after the checkpoint's last check and before its last file is written. In that case the
/// checkpoint is deleted again.
#[test]
fn a_checkpoint_that_a_clean_up_has_overtaken_is_deleted() {
    let write: [fn(&Snapshot) -> deltalog::Result<()>; 2] = [
        |late| write_checkpoint(late, &environment()),
        |late| write_checkpoint_within(late, &small(), &environment()),
    ];
    for write in write {
        let (store, storage) = empty();
        write_commit(&storage, 0, &first_lines(&BTreeMap::new()));
        (1..6).for_each(|version| write_commit(&storage, version, &[add_line(&format!("{version}"))]));
        let late = Snapshot::open(&storage, Some(2)).unwrap();
        write_checkpoint(&Snapshot::open(&storage, Some(4)).unwrap(), &environment()).unwrap();
        let before = other_files(&storage);
        let cleaner = storage_in(&store.reconnect());
        store.fail(move |_, call| {
            if call.op == Op::Put && call.path.contains("00002.checkpoint") {
                let clean_up =
                    || (0..4).for_each(|of| cleaner.delete(&LogFileName::Commit(of).path()).unwrap());
                // This runs on another thread, because a thread in the middle of a request cannot send another request.
                std::thread::scope(|scope| scope.spawn(clean_up).join().unwrap());
            }
            None
        });
        let error = write(&late).unwrap_err();
        store.heal();
        assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{error}");
        assert!(error.to_string().contains("version 2 was cleaned up while"), "{error}");
        assert_eq!(other_files(&storage), before);
    }
}

/// A slow process must not write a checkpoint older than the ones that a clean-up has kept.
#[test]
fn a_version_that_was_cleaned_up_gets_no_checkpoint() {
    let (_store, storage) = empty();
    write_commit(&storage, 0, &first_lines(&BTreeMap::new()));
    (1..6).for_each(|version| write_commit(&storage, version, &[add_line(&format!("{version}"))]));
    let late = Snapshot::open(&storage, Some(2)).unwrap();
    write_checkpoint(&Snapshot::open(&storage, Some(4)).unwrap(), &environment()).unwrap();
    (0..4).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
    let before = other_files(&storage);
    let write: [&dyn Fn() -> deltalog::Result<()>; 2] =
        [&|| write_checkpoint(&late, &environment()), &|| {
            write_checkpoint_within(&late, &small(), &environment())
        }];
    for write in write {
        let error = write().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{error}");
        assert!(error.to_string().contains("the readable versions are 4 to 5"), "{error}");
        assert_eq!(other_files(&storage), before);
    }
}
