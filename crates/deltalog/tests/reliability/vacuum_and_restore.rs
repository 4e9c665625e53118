//! VACUUM and RESTORE at the same time. Protocol: "Add File and Remove File".

use std::sync::{Arc, Mutex};

use deltalog::{ErrorKind, RestoreRequest, Storage, restore};
use serde_json::json;

use super::vacuum::{DAY_MS, HOUR_MS, WEEK_MS, at, plan, planned, put, request};
use crate::common::store::{FaultyStore, Op};
use crate::common::{NOW_MS, add_line, newest, paths, storage_in, table, write_commit};

/// Returns a table whose file `a` was replaced by `b`, in version 2, at `removed_ms`.
fn replaced(removed_ms: i64) -> (FaultyStore, Storage) {
    let (store, storage) = table(&["a"]);
    let remove = json!({"remove": {"path": "a", "deletionTimestamp": removed_ms, "dataChange": true}});
    write_commit(&storage, 2, &[add_line("b"), remove.to_string()]);
    for file in ["a", "b"] {
        put(&store, file, 0);
    }
    (store, storage)
}

/// Restores version 1 at `now_ms`.
fn restored(storage: &Storage, now_ms: i64, ignore_missing_files: bool) -> deltalog::Result<u64> {
    let base = newest(storage);
    let mut request = RestoreRequest::default();
    request.ignore_missing_files = ignore_missing_files;
    let done = restore(&base, &base.at_version(1)?, request, &at(now_ms))?;
    Ok(done.committed.unwrap().version)
}

/// A VACUUM has read the log for the last time, and is about to delete a file. A RESTORE that sees in the log that the
/// VACUUM has begun must not bring the file back.
#[test]
fn a_file_that_is_being_deleted_is_not_restored() {
    let (store, storage) = replaced(NOW_MS - HOUR_MS);
    let plan = plan(&storage, request(0));
    assert_eq!(planned(&plan), ["a".to_owned()].into());
    let (other, seen) = (storage_in(&store.reconnect()), Arc::new(Mutex::new(Vec::new())));
    let (answers, now_ms) = (Arc::clone(&seen), chrono::Utc::now().timestamp_millis());
    store.fail(move |_, call| {
        if call.op == Op::Delete && call.path.ends_with("/a") {
            // This runs on another thread, because the current thread is in the middle of a request of the VACUUM.
            let other = other.clone();
            let answer = std::thread::spawn(move || restored(&other, now_ms, false)).join().unwrap();
            answers.lock().unwrap().push(answer);
        }
        None
    });
    assert_eq!(plan.delete().unwrap().files, 1);
    store.heal();
    let error = seen.lock().unwrap().pop().unwrap().unwrap_err();
    assert_eq!(
        (error.kind(), error.reason()),
        (ErrorKind::CommitConflict, Some("files_vacuumed")),
        "{error}"
    );
    assert!(error.to_string().contains("VACUUM that has begun with version 3"), "{error}");
    assert_eq!(paths(&newest(&storage)), ["b"]);
    // After the VACUUM has ended, the RESTORE finds that the file is gone.
    assert_eq!(restored(&storage, now_ms, false).unwrap_err().kind(), ErrorKind::FileNotFound);
}

/// A VACUUM without a recorded end hinders a RESTORE only if it may still be running and may delete files that the
/// RESTORE brings back.
#[test]
fn a_vacuum_without_an_end_hinders_only_what_it_may_delete() {
    let now_ms = chrono::Utc::now().timestamp_millis();
    let start = |name: &str, age_ms: i64, parameters: serde_json::Value| {
        let info =
            json!({"operation": name, "timestamp": now_ms - age_ms, "operationParameters": parameters});
        json!({ "commitInfo": info }).to_string()
    };
    let none = || json!({"specifiedRetentionMillis": "0", "defaultRetentionMillis": WEEK_MS});
    let week = || json!({"defaultRetentionMillis": WEEK_MS.to_string()});
    let begun = |age_ms, parameters| start("VACUUM START", age_ms, parameters);
    let end = || start("VACUUM END", 0, json!({}));
    for (what, removed_ms, commits, later_ms, is_refused) in [
        ("no retention", now_ms - HOUR_MS, vec![begun(0, none())], 0, true),
        ("removed before the retention", now_ms - WEEK_MS - HOUR_MS, vec![begun(0, week())], 0, true),
        ("a retention that is not named", now_ms - HOUR_MS, vec![begun(0, json!({}))], 0, true),
        ("another has ended", now_ms - HOUR_MS, vec![begun(0, none()), begun(0, none()), end()], 0, true),
        ("retained", now_ms - HOUR_MS, vec![begun(0, week())], 0, false),
        ("removed since", now_ms, vec![begun(HOUR_MS, week())], 0, false),
        ("ended", now_ms - HOUR_MS, vec![begun(0, none()), end()], 0, false),
        ("dead", now_ms - HOUR_MS, vec![begun(0, none())], 2 * DAY_MS, false),
    ] {
        let (_store, storage) = replaced(removed_ms);
        for (commit, version) in commits.into_iter().zip(3..) {
            write_commit(&storage, version, &[commit]);
        }
        let result = restored(&storage, now_ms + later_ms, false);
        assert_eq!(result.is_err(), is_refused, "{what}: {result:?}");
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::CommitConflict, "{what}: {error}");
            // A RESTORE that ignores missing files is not hindered.
            restored(&storage, now_ms + later_ms, true).unwrap();
        }
        assert_eq!(paths(&newest(&storage)), ["a"], "{what}");
    }
}
