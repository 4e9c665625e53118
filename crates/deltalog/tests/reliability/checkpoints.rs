//! Intact and damaged checkpoints of every form. Protocol: "Checkpoints", "Checkpoint Naming Scheme", "V2
//! Spec", "Sidecar Files".

use std::collections::BTreeMap;

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::log::{CheckpointKind, LOG_DIRECTORY};
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::engine::scan::FileListing;
use deltalog::{ErrorKind, Snapshot, Storage};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use crate::common::forms::{FORMS, Form, rewrite};
use crate::common::oracle::Table;
use crate::common::store::{FaultyStore, Op};
use crate::common::warnings::warnings;
use crate::common::{add_line, empty, environment, live, paths, write_commit, write_log};
use crate::histories::{contents, expected, history, write_history};

fn checkpoint(storage: &Storage, version: u64, form: Form) -> Vec<String> {
    write_checkpoint(&Snapshot::open(storage, Some(version)).unwrap(), &environment()).unwrap();
    rewrite(storage, version, form)
}

/// Creates a log of `versions` commits with checkpoints of `forms`. Each commit except the first adds a file.
fn log(versions: u64, forms: &[(u64, Form)]) -> (FaultyStore, Storage, Vec<String>) {
    let (store, storage) = empty();
    write_log(&storage, versions);
    let files = forms.iter().flat_map(|(version, form)| checkpoint(&storage, *version, *form)).collect();
    store.take_calls();
    (store, storage, files)
}

fn clean_up_to(storage: &Storage, version: u64) {
    (0..=version).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
}

fn names(versions: std::ops::Range<u64>) -> Vec<String> {
    let mut names: Vec<_> = versions.map(|version| format!("{version}.parquet")).collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A checkpoint has the same content in every form, and so has the next checkpoint, which is made from it.
    #[test]
    fn every_form_has_the_same_contents(
        history in history(), at in any::<Index>(), form in prop::sample::select(&FORMS[..]),
    ) {
        let storage = write_history(&history);
        let version = at.index(history.len()) as u64;
        checkpoint(&storage, version, form);
        let tables: Vec<_> = (0..history.len() as u64).map(|version| Table::at(&storage, version)).collect();
        clean_up_to(&storage, version);
        for version in version..history.len() as u64 {
            let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
            prop_assert_eq!(contents(&snapshot), expected(&tables[version as usize]));
        }
        let last = history.len() as u64 - 1;
        write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &environment()).unwrap();
        let opened = Snapshot::open(&storage, None).unwrap();
        prop_assert_eq!(opened.segment().checkpoint.as_ref().map(|checkpoint| checkpoint.version), Some(last));
        prop_assert_eq!(contents(&opened), expected(&tables[last as usize]));
    }

    /// A truncated file of a checkpoint never changes the file list. Only truncation is tested here, because a changed
    /// byte in a value cannot always be detected.
    #[test]
    fn truncated_files_change_nothing(
        form in prop::sample::select(&FORMS[..]), which in any::<Index>(), cut in any::<Index>(),
    ) {
        let (_, storage, files) = log(9, &[(5, form)]);
        let file = &files[which.index(files.len())];
        let bytes = storage.read(file).unwrap();
        let end = cut.index(bytes.len());
        storage.put(file, bytes.slice(..end)).unwrap();
        let snapshot = Snapshot::open(&storage, None).unwrap();
        let found = paths(&snapshot);
        if !lacks_only_files(&bytes[..end], form) {
            prop_assert_eq!(found, names(1..9));
        }
    }

    #[test]
    fn changed_bytes_never_panic(
        form in prop::sample::select(&FORMS[..]), which in any::<Index>(), at in any::<Index>(), byte: u8,
    ) {
        let (_, storage, files) = log(9, &[(5, form)]);
        let file = &files[which.index(files.len())];
        let mut bytes = storage.read(file).unwrap().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        storage.put(file, bytes.into()).unwrap();
        if let Ok(snapshot) = Snapshot::open(&storage, None) {
            let _ = live(&snapshot);
        }
    }
}

/// Returns whether `bytes` is a JSON checkpoint without sidecars that lacks only file actions at its end. Such
/// a loss cannot be detected: the lines are complete, and so are the actions that every V2 checkpoint has.
fn lacks_only_files(bytes: &[u8], form: Form) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let ends_with_a_line = text.ends_with('\n')
        || text.lines().last().is_some_and(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
    form == Form::UuidJson(0)
        && ends_with_a_line
        && text.contains("\"metaData\"")
        && text.contains("\"protocol\"")
}

#[test]
fn a_damaged_checkpoint_is_replaced_with_a_warning() {
    for form in FORMS {
        for damage in [
            "",
            "x",
            "PAR1",
            "{\"checkpointMetadata\":{\"version\":4}}\n",
            "{\"checkpointMetadata\":{\"version\":5}}\n",
        ] {
            let (_, storage, files) = log(9, &[(3, Form::Classic), (5, form)]);
            for file in &files[1..] {
                let bytes = storage.read(file).unwrap();
                storage.put(file, damage.to_owned().into()).unwrap();
                let (logged, snapshot) = warnings(|| {
                    let snapshot = Snapshot::open(&storage, None).unwrap();
                    assert_eq!(paths(&snapshot), names(1..9), "{form:?} {file} {damage}");
                    snapshot
                });
                let is_listed =
                    snapshot.segment().checkpoint.as_ref().map(|checkpoint| checkpoint.version) == Some(5);
                // A checkpoint file with size 0 in the listing is ignored without a warning.
                assert!(
                    !is_listed || logged.iter().any(|line| line.contains(file.rsplit('/').next().unwrap())),
                    "{form:?} {file}: {logged:?}"
                );
                storage.put(file, bytes).unwrap();
            }
        }
    }
}

#[test]
fn a_checkpoint_with_a_missing_file_is_replaced() {
    for form in FORMS {
        let (_, storage, files) = log(9, &[(5, form)]);
        for file in &files {
            let bytes = storage.read(file).unwrap();
            storage.delete(file).unwrap();
            assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()), names(1..9), "{form:?} {file}");
            storage.put(file, bytes).unwrap();
        }
    }
}

/// A cleanup may delete the checkpoint after the snapshot was opened.
#[test]
fn a_checkpoint_deleted_under_an_open_snapshot_is_replaced() {
    for form in FORMS {
        let (_, storage, files) = log(9, &[(5, form)]);
        // The commits contain protocol and metadata, so opening the snapshot does not read the checkpoint.
        write_commit(&storage, 9, &crate::common::first_lines(&BTreeMap::new()));
        let snapshot = Snapshot::open(&storage, None).unwrap();
        files.iter().for_each(|file| storage.delete(file).unwrap());
        assert_eq!(paths(&snapshot), names(1..9), "{form:?}");
        assert_eq!(paths(&snapshot.refresh().unwrap()), names(1..9), "{form:?}");
    }
}

#[test]
fn errors_of_an_irreplaceable_checkpoint_name_the_file() {
    for form in FORMS {
        let (_, storage, files) = log(9, &[(5, form)]);
        clean_up_to(&storage, 5);
        let file = files.last().unwrap();
        storage.put(file, "PAR1 and then nothing".into()).unwrap();
        let error = Snapshot::open(&storage, None).and_then(|snapshot| live(&snapshot)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptLog, "{form:?}: {error}");
        assert!(error.to_string().contains(file.as_str()), "{form:?}: {error}");
    }
}

/// If a checkpoint is damaged, the next older one is used instead. If all are damaged, the commits are used.
#[test]
fn several_damaged_checkpoints_are_replaced() {
    let (_, storage, files) =
        log(12, &[(3, Form::UuidJson(2)), (6, Form::Parts(2)), (9, Form::ClassicV2(1))]);
    for file in files.iter().rev() {
        storage.put(file, "PAR1".into()).unwrap();
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!(paths(&snapshot), names(1..12), "{file}");
        assert_eq!(snapshot.app_transactions().unwrap(), []);
    }
}

/// A damaged column of file actions is detected only when it is read. If no row was returned before, the
/// checkpoint is replaced. Otherwise the first listing fails, and the next one succeeds.
#[test]
fn damaged_columns_are_detected_when_files_are_listed() {
    let (_, storage, files) = log(9, &[(6, Form::Classic)]);
    let broken = rewrite(&storage, 6, Form::UuidParquet(1)).pop().unwrap();
    assert_ne!(files[0], broken);
    let bytes = storage.read(&broken).unwrap().to_vec();
    let pages: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b".parquet")).collect();
    for (index, page) in pages.iter().enumerate() {
        let mut damaged = bytes.clone();
        // The length before a string is overwritten, so that the page cannot be decoded.
        damaged[page - 5..*page - 1].fill(0xff);
        storage.put(&broken, damaged.into()).unwrap();
        let snapshot = Snapshot::open(&storage, None).unwrap();
        match live(&snapshot) {
            Ok(files) => assert_eq!(files.len(), 8, "{index}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::CorruptLog, "{index}: {error}"),
        }
        assert_eq!(paths(&snapshot), names(1..9), "the second listing starts from the commits: {index}");
    }
}

#[test]
fn sidecars_outside_their_directory_are_refused() {
    for path in [
        "../../outside.parquet",
        "/etc/x.parquet",
        "file:///t/x.parquet",
        "a/x.parquet",
        "..%2Fx.parquet",
        "x.json",
    ] {
        let (store, storage, files) = log(9, &[(5, Form::UuidJson(1))]);
        let text = String::from_utf8(storage.read(&files[0]).unwrap().to_vec()).unwrap();
        storage.put(&files[0], text.replace("5-0%20of%20uuidjson1.parquet", path).into()).unwrap();
        store.take_calls();
        assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()), names(1..9), "{path}");
        let calls = store.take_calls();
        assert!(
            calls.iter().all(|call| call.path.starts_with("t/_delta_log/0")
                || call.path.contains("_last_checkpoint")
                || call.op == Op::List),
            "{calls:?}"
        );
        clean_up_to(&storage, 5);
        let error = Snapshot::open(&storage, None).and_then(|snapshot| live(&snapshot)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptLog);
    }
}

/// "Multiple checkpoints could exist for the same table version": any complete one is sufficient.
#[test]
fn any_of_several_checkpoints_of_a_version_is_sufficient() {
    let (_, storage) = empty();
    write_log(&storage, 9);
    let mut sets = Vec::new();
    for form in [Form::UuidJson(2), Form::Parts(3), Form::Parts(2), Form::UuidParquet(1), Form::Classic] {
        sets.push(checkpoint(&storage, 5, form));
    }
    clean_up_to(&storage, 5);
    while let Some(set) = sets.pop() {
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!(paths(&snapshot), names(1..9), "{set:?}");
        storage.put(&set[0], "PAR1".into()).unwrap();
    }
    assert_eq!(
        Snapshot::open(&storage, None).and_then(|snapshot| live(&snapshot)).unwrap_err().kind(),
        ErrorKind::CorruptLog
    );
}

#[test]
fn the_cheapest_checkpoint_is_preferred() {
    let (_, storage) = empty();
    write_log(&storage, 9);
    let kinds = [
        (Form::UuidJson(2), CheckpointKind::UuidJson),
        (Form::Parts(3), CheckpointKind::MultiPart),
        (Form::UuidParquet(1), CheckpointKind::UuidParquet),
        (Form::Classic, CheckpointKind::Classic),
    ];
    for (form, kind) in kinds {
        checkpoint(&storage, 5, form);
        assert_eq!(
            Snapshot::open(&storage, None)
                .unwrap()
                .segment()
                .checkpoint
                .as_ref()
                .map(|checkpoint| checkpoint.kind),
            Some(kind)
        );
    }
}

/// Opening a snapshot and listing its files reads each file once.
#[test]
fn no_file_is_read_twice() {
    for form in FORMS {
        let (store, storage, files) = log(9, &[(5, form)]);
        let snapshot = Snapshot::open(&storage, None).unwrap();
        live(&snapshot).unwrap();
        snapshot.app_transactions().unwrap();
        snapshot.domain_metadata().unwrap();
        let calls = store.take_calls();
        let mut read: Vec<_> =
            calls.iter().filter(|call| call.op == Op::Get).map(|call| call.path.clone()).collect();
        read.sort();
        // The files that are read are the hint, three commits, and the files of the checkpoint.
        assert_eq!(read.len(), 1 + 3 + files.len(), "{form:?}: {read:?}");
        assert!(read.windows(2).all(|pair| pair[0] != pair[1]), "{form:?}: {read:?}");
        assert_eq!(calls.iter().filter(|call| call.op == Op::List).count(), 1);
        // A refresh keeps the open files of the checkpoint.
        write_commit(&storage, 9, &[add_line("9.parquet")]);
        store.take_calls();
        snapshot.refresh().unwrap();
        assert_eq!(store.take_calls().len(), 2, "{form:?}");
    }
}

#[test]
fn duplicates_in_a_listing_change_nothing() {
    for form in FORMS {
        let (store, storage, files) = log(9, &[(5, form)]);
        let held = Snapshot::open(&storage, Some(6)).unwrap();
        store.show_twice();
        assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()), names(1..9), "{form:?}");
        assert_eq!(paths(&held.refresh().unwrap()), names(1..9), "{form:?}");
        storage.put(&files[0], "PAR1".into()).unwrap();
        assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()), names(1..9), "{form:?}");
        // If one part is listed twice and another part is missing, the checkpoint is not complete.
        storage.delete(&files[0]).unwrap();
        assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()), names(1..9), "{form:?}");
    }
}

/// Correct and wrong hints, with and without a checksum. Protocol: "Last Checkpoint File Schema".
#[test]
fn hints_never_change_which_v2_checkpoint_is_used() {
    let (_, storage, files) = log(9, &[(3, Form::UuidJson(1)), (6, Form::UuidJson(2))]);
    let name = files[2].rsplit('/').next().unwrap();
    let v2 = json!({
        "path": name, "sizeInBytes": 1, "modificationTime": 2, "nonFileActions": [], "sidecarFiles": [],
    });
    let missing = json!({"path": "gone.json", "sizeInBytes": 1, "modificationTime": 2});
    let hints = [
        json!({"version": 6, "size": 8, "v2Checkpoint": v2}),
        json!({"version": 6, "size": 8, "v2Checkpoint": missing}),
        json!({"version": 6, "size": 8, "v2Checkpoint": 7, "tags": [], "checkpointSchema": "?"}),
        json!({"version": 6, "size": 8, "checksum": "00000000000000000000000000000000"}),
        json!({"version": 3, "size": 8}),
        json!({"version": 5, "size": 8, "parts": 4}),
    ];
    for hint in hints {
        storage.put(&format!("{LOG_DIRECTORY}/_last_checkpoint"), hint.to_string().into()).unwrap();
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!(paths(&snapshot), names(1..9), "{hint}");
        assert_eq!(
            snapshot.segment().checkpoint.as_ref().map(|checkpoint| checkpoint.version),
            Some(6),
            "{hint}"
        );
    }
}

/// If several threads share a row group, each matching file is listed once and in order.
#[test]
fn files_of_a_row_group_shared_by_threads_are_listed_once() {
    let (_, storage) = empty();
    write_log(&storage, 1);
    let adds: Vec<String> = (0..60_000)
        .map(|id| {
            let stats = json!({
                "numRecords": 1, "minValues": {"id": id}, "maxValues": {"id": id}, "nullCount": {"id": 0},
            });
            let add = json!({
                "path": format!("{id}.parquet"), "partitionValues": {}, "size": 1,
                "modificationTime": 1, "dataChange": true, "stats": stats.to_string(),
            });
            json!({ "add": add }).to_string()
        })
        .collect();
    write_commit(&storage, 1, &adds);
    write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &environment()).unwrap();
    clean_up_to(&storage, 0);
    let snapshot = Snapshot::open(&storage, None).unwrap();
    for (sql, expected) in [
        ("id >= 0", 0..60_000),
        ("id >= 29990 AND id < 30010", 29_990..30_010),
        ("id < 20000", 0..20_000),
        ("id = 59999", 59_999..60_000),
    ] {
        let predicate = parse(sql, "UTC", ParseMode::Strict).unwrap();
        let listed: Vec<String> = FileListing::new(&snapshot)
            .predicate(&predicate)
            .unwrap()
            .paths()
            .unwrap()
            .map(|path| path.unwrap().to_string())
            .collect();
        // The last line of a commit comes first.
        assert!(
            listed.iter().eq(&expected.rev().map(|id| format!("{id}.parquet")).collect::<Vec<_>>()),
            "{sql}: {} files",
            listed.len()
        );
    }
}

/// "If two checkpoint writers race to create the same classic checkpoint, the latest writer wins", and each may have
/// used a different spec. The sidecars of the replaced checkpoint may have been deleted, too.
#[test]
fn a_classic_checkpoint_that_was_replaced_is_opened_again() {
    let (_, storage, files) = log(6, &[(5, Form::Classic)]);
    let by_the_first_spec = storage.read(&files[0]).unwrap();
    let v2 = rewrite(&storage, 5, Form::ClassicV2(2));
    let held = Snapshot::open(&storage, None).unwrap();
    let before = live(&held).unwrap();
    storage.put(&files[0], by_the_first_spec).unwrap();
    v2[1..].iter().for_each(|sidecar| storage.delete(sidecar).unwrap());
    // The commit is gone, so only the checkpoint contains this version.
    clean_up_to(&storage, 4);
    write_commit(&storage, 6, &[add_line("6.parquet")]);
    let (warnings, found) = warnings(|| held.refresh().and_then(|newer| live(&newer)));
    assert_eq!(warnings, Vec::<String>::new());
    let found = found.unwrap();
    assert_eq!(found.len(), before.len() + 1);
    assert!(before.iter().all(|file| found.contains(file)));
}

/// "V2 Spec": "the version of the checkpoint" is in the content. The classic file name does not show whether the
/// checkpoint follows the V1 or the V2 spec.
#[test]
fn a_classic_name_on_a_v2_checkpoint_of_another_version_is_refused() {
    let (_, storage, _) = log(8, &[(3, Form::ClassicV2(0))]);
    let other = storage.read(&LogFileName::ClassicCheckpoint(3).path()).unwrap();
    storage.put(&LogFileName::ClassicCheckpoint(6).path(), other).unwrap();
    let (warnings, found) = warnings(|| live(&Snapshot::open(&storage, None).unwrap()).unwrap());
    assert_eq!(found.len(), 7);
    assert!(warnings.iter().any(|line| line.contains("states version 3")), "{warnings:?}");
}
