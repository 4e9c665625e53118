//! Changes of a table that meet commits of other writers. Protocol: "Creation of New Log Entries", "CHECK Constraints",
//! "Row Tracking".

use deltalog::{ColumnPath, Environment, ErrorKind, Snapshot, Storage, TableChange, alter_table};

use crate::common::store::FaultyStore;
use crate::common::{append, environment, overwrite, table};

/// What another writer has committed since the table was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Winner {
    Append,
    Overwrite,
    Property,
    Feature,
}

const WINNERS: [Winner; 4] = [Winner::Append, Winner::Overwrite, Winner::Property, Winner::Feature];

fn set(name: &str, value: &str) -> TableChange {
    TableChange::SetProperties([(name.to_owned(), value.to_owned())].into())
}

fn others() -> Environment {
    Environment::system()
}

impl Winner {
    fn commit(self, base: &Snapshot) {
        let change = |change| alter_table(base, &change, Default::default(), &others()).unwrap().map(drop);
        match self {
            Self::Append => drop(append(base, "other", &others()).commit_or_fail().unwrap()),
            Self::Overwrite => {
                drop(overwrite(base, "other", &others()).unwrap().commit_or_fail().unwrap());
            }
            Self::Property => change(set("theirs", "1")).unwrap(),
            Self::Feature => {
                change(TableChange::AddFeatures(vec!["vacuumProtocolCheck".to_owned()])).unwrap()
            }
        }
    }
}

/// Each change, and whether it depends on the rows of the table.
fn changes() -> Vec<(TableChange, bool)> {
    let column = || ColumnPath::new(["id"]);
    vec![
        (set("mine", "1"), false),
        (set("delta.enableInCommitTimestamps", "true"), false),
        (set("delta.columnMapping.mode", "name"), false),
        (set("delta.enableRowTracking", "true"), true),
        (TableChange::AddFeatures(vec!["checkConstraints".to_owned()]), false),
        (TableChange::SetNullable { column: column(), nullable: false }, true),
        (TableChange::SetDefault { column: column(), sql: "1".to_owned() }, false),
        (TableChange::ClusterBy(vec![column()]), true),
        (TableChange::DropFeature("appendOnly".to_owned()), false),
        (TableChange::AddConstraint { name: "c".to_owned(), sql: "id > 0".to_owned() }, true),
        (
            TableChange::SetColumnMetadata {
                column: column(),
                entries: [("comment".to_owned(), Some("c".to_owned()))].into(),
            },
            false,
        ),
    ]
}

/// A table without rows, so that each change is possible.
fn empty_table() -> (FaultyStore, Storage, Snapshot) {
    let (store, storage) = table(&[]);
    let base = Snapshot::open(&storage, None).unwrap();
    (store, storage, base)
}

/// Changes of the metadata conflict with each other. Rows are a conflict only for a change that depends on them. The
/// other commit is found by the listing, or only by the put.
#[test]
fn a_change_conflicts_with_what_it_depends_on() {
    for (change, depends_on_rows) in changes() {
        for winner in WINNERS {
            for is_hidden in [false, true] {
                let (store, storage, base) = empty_table();
                winner.commit(&base);
                if is_hidden {
                    store.hide(&format!("{:020}.json", 1));
                }
                let sets_metadata =
                    !matches!(change, TableChange::AddFeatures(_) | TableChange::ClusterBy(_));
                let conflicts = match winner {
                    Winner::Append | Winner::Overwrite => depends_on_rows,
                    Winner::Property => sets_metadata,
                    Winner::Feature => true,
                };
                let result = alter_table(&base, &change, Default::default(), &environment());
                let context = format!("{change:?} after {winner:?}: {result:?}");
                match result {
                    Ok(committed) => {
                        assert!(!conflicts, "{context}");
                        let committed = committed.unwrap();
                        assert_eq!((committed.version, committed.rebased_over), (2, 1), "{context}");
                    }
                    Err(error) => {
                        assert!(conflicts, "{context}");
                        assert_eq!(
                            (error.kind(), error.version()),
                            (ErrorKind::CommitConflict, Some(1)),
                            "{context}"
                        );
                        assert!(storage.head("_delta_log/00000000000000000002.json").unwrap().is_none());
                    }
                }
            }
        }
    }
}

/// The other way round: files that were written for the table of before are a conflict, if the change concerns them.
#[test]
fn an_append_conflicts_with_changes_that_concern_it() {
    for (change, _) in changes() {
        let (_, _, base) = empty_table();
        alter_table(&base, &change, Default::default(), &others()).unwrap().unwrap();
        let concerns_no_writer = match &change {
            TableChange::SetProperties(properties) => properties.contains_key("mine"),
            TableChange::SetColumnMetadata { .. } => true,
            _ => false,
        };
        let result = append(&base, "mine", &environment()).commit_or_fail();
        assert_eq!(result.is_ok(), concerns_no_writer, "{change:?}: {result:?}");
    }
}
