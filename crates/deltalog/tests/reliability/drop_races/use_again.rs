//! Drops of a feature that another writer begins to use again on purpose. Protocol: "Type Widening", "Deletion
//! Vectors".

use arrow::datatypes::DataType;
use deltalog::{ColumnPath, CreationMode, ErrorKind, PrimitiveType, Result, Snapshot, Storage, TableChange};

use super::{append_as, change, define, drop_from, finish, ids, race_from, restore, set, using};
use crate::common::store::{Call, FaultyStore, Op};
use crate::common::{empty, storage_in};

/// Creates a table for which type widening is no longer enabled. One file stores shorts, and one file stores integers,
/// the column's type. The rows are 0, 2 and 4.
fn widened_once() -> FaultyStore {
    let (store, storage) = empty();
    let property = ("delta.enableTypeWidening", "true");
    define(&storage, PrimitiveType::Short, property, CreationMode::ErrorIfExists, &[0, 2]);
    widen(&storage, PrimitiveType::Integer).unwrap();
    append_as(&storage, PrimitiveType::Integer, &DataType::Int32, 4).unwrap();
    let names = vec![property.0.to_owned()];
    change(&storage, &TableChange::UnsetProperties { names, if_exists: false }).unwrap();
    store.take_calls();
    store
}

fn is_commit(call: &Call) -> bool {
    call.op == Op::Create && call.path.ends_with(".json")
}

fn widen(storage: &Storage, data_type: PrimitiveType) -> Result<()> {
    let data_type = data_type.into();
    change(storage, &TableChange::WidenColumn { column: ColumnPath::new(["id"]), data_type })
}

/// "Type Widening". A step of the drop finds that the types in the files match the schema. Afterwards another writer
/// widens the column again.
#[test]
fn a_column_that_is_widened_again_leaves_no_older_types() {
    let work = |storage: &Storage| {
        change(storage, &set("delta.enableTypeWidening", "true"))?;
        widen(storage, PrimitiveType::Long)
    };
    // This happens after a step is committed, and before the drop reads the table again.
    let mut follows_commit = false;
    let after_commits = |_, call: &Call| std::mem::replace(&mut follows_commit, is_commit(call));
    race_from(&widened_once(), "typeWidening", work, &[0, 2, 4], after_commits);
}

/// "Deletion Vectors". Whenever the drop is about to make its last commit, another writer restores a file with deleted
/// rows, and undoes this again. Each time the last commit conflicts, and the drop again makes commits for checkpoints
/// that hide the version with the file. After a number of attempts, the drop gives up.
#[test]
fn a_drop_whose_steps_are_undone_gives_up() {
    const MOST_RESTORES: u32 = 30;
    let (store, storage) = using("deletionVectors");
    let base = Snapshot::open(&storage, None).unwrap();
    let (other, mut barriers, mut restores) = (storage_in(&store.reconnect()), 0, 0);
    store.fail(move |_, call| {
        let is_write = call.op != Op::Get && call.op != Op::List;
        if is_write && call.path.ends_with(".checkpoint.parquet") {
            barriers += 1;
        } else if is_commit(call) && barriers >= 3 {
            (barriers, restores) = (0, restores + 1);
            if restores <= MOST_RESTORES {
                let restore_and_undo = || {
                    let newest = Snapshot::open(&other, None).unwrap();
                    restore(&newest, &Snapshot::open(&other, Some(0)).unwrap()).unwrap();
                    restore(&newest.refresh().unwrap(), &newest).unwrap();
                };
                std::thread::scope(|scope| scope.spawn(restore_and_undo).join().unwrap());
            }
        }
        None
    });
    let error = drop_from(&base, "deletionVectors").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert!(error.to_string().contains("other writers undo the steps"), "{error}");
    store.heal();
    assert_eq!(ids(&Snapshot::open(&storage, None).unwrap()), [0, 2, 4]);
    finish(&storage, "deletionVectors", "it is not used again");
}
