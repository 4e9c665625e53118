//! Changes of a table's definition that conflict with commits of other writers. Protocol: "Creation of New Log
//! Entries", "CHECK Constraints", "Row Tracking".

use deltalog::engine::commit::{Committed, Transaction};
use deltalog::engine::protocol::DomainMetadata;
use deltalog::{
    ColumnPath, CreationMode, Environment, ErrorKind, Operation, PendingWrite, PrimitiveType, Result,
    SaveMode, SchemaMode, Snapshot, Storage, StructField, StructType, TableChange, TableDefinition,
    WriteRequest, alter_table, drop_feature,
};

use crate::common::store::FaultyStore;
use crate::common::{append, empty, environment, overwrite, schema, table};

/// What other writers have committed since the table was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Winner {
    Append,
    Overwrite,
    Property,
    Feature,
    ClusterBy,
    Domain,
}

const WINNERS: [Winner; 6] =
    [Winner::Append, Winner::Overwrite, Winner::Property, Winner::Feature, Winner::ClusterBy, Winner::Domain];

fn set(name: &str, value: &str) -> TableChange {
    TableChange::SetProperties([(name.to_owned(), value.to_owned())].into())
}

fn others() -> Environment {
    Environment::system()
}

impl Winner {
    /// Creates the table that the other writer changes. It supports domain metadata if that writer commits only
    /// domains.
    fn table(self) -> (FaultyStore, Storage, Snapshot) {
        match self {
            Self::ClusterBy | Self::Domain => defined(|definition| {
                definition.clustering_columns = Some(Vec::new());
            }),
            _ => empty_table(),
        }
    }

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
            Self::ClusterBy => change(TableChange::ClusterBy(vec![ColumnPath::new(["id"])])).unwrap(),
            Self::Domain => set_domain(base),
        }
    }
}

/// A change of a table by one commit.
#[derive(Debug)]
enum Change {
    Alter(TableChange),
    Drop(&'static str),
}

impl From<TableChange> for Change {
    fn from(change: TableChange) -> Self {
        Self::Alter(change)
    }
}

impl Change {
    fn commit(&self, base: &Snapshot, environment: &Environment) -> Result<Option<Committed>> {
        match self {
            Self::Alter(change) => alter_table(base, change, Default::default(), environment),
            Self::Drop(feature) => {
                drop_feature(base, feature, false, Default::default(), environment).map(Some)
            }
        }
    }
}

/// Lists all changes, and for each whether it depends on the rows of the table.
fn changes() -> Vec<(Change, bool)> {
    let column = || ColumnPath::new(["id"]);
    vec![
        (set("mine", "1").into(), false),
        (set("delta.enableInCommitTimestamps", "true").into(), false),
        (set("delta.columnMapping.mode", "name").into(), false),
        (set("delta.enableRowTracking", "true").into(), true),
        (TableChange::AddFeatures(vec!["checkConstraints".to_owned()]).into(), false),
        (TableChange::SetNullable { column: column(), nullable: false }.into(), true),
        (TableChange::SetDefault { column: column(), sql: "1".to_owned() }.into(), false),
        (TableChange::ClusterBy(vec![column()]).into(), true),
        (Change::Drop("appendOnly"), false),
        (TableChange::AddConstraints(vec![("c".to_owned(), "id > 0".to_owned())]).into(), true),
        (
            TableChange::SetColumnMetadata {
                column: column(),
                entries: [("comment".to_owned(), Some("c".to_owned()))].into(),
            }
            .into(),
            false,
        ),
    ]
}

/// Sets a domain of an application.
fn set_domain(base: &Snapshot) {
    let mut transaction = Transaction::new(base, Operation::new("TEST"), &others()).unwrap();
    let mut domain = DomainMetadata::default();
    "theirs".clone_into(&mut domain.domain);
    transaction.set_domain(domain).unwrap();
    transaction.commit_or_fail().unwrap();
}

/// Creates a table without rows. `define` completes its definition.
fn defined(define: impl FnOnce(&mut TableDefinition)) -> (FaultyStore, Storage, Snapshot) {
    let (store, storage) = empty();
    let mut definition = TableDefinition::new(schema());
    define(&mut definition);
    let mode = CreationMode::ErrorIfExists;
    let creation = PendingWrite::define(&storage, &definition, mode, Vec::new(), &others()).unwrap().unwrap();
    creation.commit_or_fail(Vec::new(), Operation::new("CREATE TABLE")).unwrap();
    let base = Snapshot::open(&storage, None).unwrap();
    (store, storage, base)
}

/// Creates a table without rows, to which every change can be applied.
fn empty_table() -> (FaultyStore, Storage, Snapshot) {
    let (store, storage) = table(&[]);
    let base = Snapshot::open(&storage, None).unwrap();
    (store, storage, base)
}

/// Changes of the metadata conflict with each other. Changes of rows conflict only with a change that depends on the
/// rows. The commit of the other writer is found by the listing, or, if the listing hides it, only when the put fails.
#[test]
fn a_change_conflicts_with_what_it_depends_on() {
    for (change, depends_on_rows) in changes() {
        for winner in WINNERS {
            for is_hidden in [false, true] {
                let (store, storage, base) = winner.table();
                winner.commit(&base);
                if is_hidden {
                    store.hide(&format!("{:020}.json", 1));
                }
                let sets_metadata =
                    !matches!(change, Change::Alter(TableChange::AddFeatures(_) | TableChange::ClusterBy(_)));
                let conflicts = match winner {
                    Winner::Append | Winner::Overwrite => depends_on_rows,
                    Winner::Property => sets_metadata,
                    Winner::Feature => true,
                    // These pairs of changes affect the same domain, or one affects the schema and the other the
                    // clustering columns in it.
                    Winner::ClusterBy => {
                        sets_metadata || matches!(change, Change::Alter(TableChange::ClusterBy(_)))
                    }
                    Winner::Domain => matches!(change, Change::Drop(_)),
                };
                let result = change.commit(&base, &environment());
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

/// An append whose files were written for the earlier definition conflicts with a change that affects these files.
#[test]
fn an_append_conflicts_with_changes_that_concern_it() {
    for (change, _) in changes() {
        let (_, _, base) = empty_table();
        change.commit(&base, &others()).unwrap().unwrap();
        let concerns_no_writer = match &change {
            Change::Alter(TableChange::SetProperties(properties)) => properties.contains_key("mine"),
            Change::Alter(TableChange::SetColumnMetadata { .. }) => true,
            _ => false,
        };
        let result = append(&base, "mine", &environment()).commit_or_fail();
        assert_eq!(result.is_ok(), concerns_no_writer, "{change:?}: {result:?}");
    }
}

/// "Clustered Table": if the domain named a column that no longer exists, the table could not be written any more.
#[test]
fn a_column_does_not_disappear_while_the_table_is_clustered_by_it() {
    let column = |name: &str| StructField::new(name, PrimitiveType::Long, true);
    let (_, storage, base) = defined(|definition| {
        definition.schema = StructType::try_new(vec![column("a"), column("b")]).unwrap();
        definition.clustering_columns = Some(Vec::new());
        definition.configuration.insert("delta.columnMapping.mode".to_owned(), "name".to_owned());
    });
    let by_b = || vec![ColumnPath::new(["b"])];
    let overwrite = || {
        let mut request =
            WriteRequest::new(StructType::try_new(vec![column("a")]).unwrap(), SaveMode::Overwrite);
        request.schema_mode = SchemaMode::Overwrite;
        PendingWrite::begin_on(&base, request, &environment()).unwrap().unwrap()
    };
    let begun = overwrite();
    alter_table(&base, &TableChange::ClusterBy(by_b()), Default::default(), &others()).unwrap().unwrap();
    let dropped =
        alter_table(&base, &TableChange::DropColumns(by_b()), Default::default(), &environment()).map(drop);
    let [begun, late] =
        [begun, overwrite()].map(|write| write.commit_or_fail(Vec::new(), Operation::new("WRITE")).map(drop));
    for result in [dropped, begun, late] {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("domain_changed")));
    }
    let newest = Snapshot::open(&storage, None).unwrap();
    assert_eq!((newest.version(), newest.clustering_columns().unwrap()), (1, vec![vec!["b".to_owned()]]));
}

/// "Domain Metadata", "Clustered Table": a table never keeps a domain after the feature that defines it was dropped.
#[test]
fn a_feature_is_not_dropped_while_another_writer_begins_to_use_it() {
    let add =
        |names: &[&str]| TableChange::AddFeatures(names.iter().map(|name| (*name).to_owned()).collect());
    type Use = fn(&Snapshot);
    let cluster: Use = |base| Winner::ClusterBy.commit(base);
    for (feature, begin) in [("domainMetadata", set_domain as Use), ("clustering", cluster)] {
        let (_, storage, base) = empty_table();
        alter_table(&base, &add(&[feature]), Default::default(), &others()).unwrap().unwrap();
        let base = base.refresh().unwrap();
        begin(&base);
        let result = Change::Drop(feature).commit(&base, &environment());
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("domain_changed")));
        assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 2, "{feature}");
    }
}

/// "Clustered Table": removing the clustering of a table that is not clustered changes neither the table nor its
/// protocol.
#[test]
fn clustering_by_no_columns_needs_no_feature() {
    let (_, _, base) = empty_table();
    let change = TableChange::ClusterBy(Vec::new());
    assert_eq!(alter_table(&base, &change, Default::default(), &environment()).unwrap(), None);
}

/// If the columns of a table are replaced, a column with the same name is kept. Other new columns are added. Other old
/// columns are dropped, which needs column mapping.
#[test]
fn columns_are_replaced_by_their_names() {
    let column = |name: &str| StructField::new(name, PrimitiveType::Long, true);
    let replace = |base: &Snapshot, names: &[&str]| {
        let columns = StructType::try_new(names.iter().map(|name| column(name)).collect()).unwrap();
        alter_table(base, &TableChange::ReplaceColumns(columns), Default::default(), &environment())
    };
    let names =
        |base: &Snapshot| base.schema().fields().iter().map(|field| field.name.clone()).collect::<Vec<_>>();
    let (_, _, base) = empty_table();
    assert_eq!(replace(&base, &["new", "ID"]).unwrap().unwrap().version, 1);
    let base = base.refresh().unwrap();
    assert_eq!(names(&base), ["new", "id"]);
    assert_eq!(replace(&base, &["new", "id"]).unwrap(), None);
    assert_eq!(replace(&base, &["id", "other"]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(replace(&base, &["id"]).unwrap_err().kind(), ErrorKind::Unsupported);
    alter_table(&base, &set("delta.columnMapping.mode", "name"), Default::default(), &others()).unwrap();
    let base = base.refresh().unwrap();
    assert_eq!(replace(&base, &["id"]).unwrap().unwrap().version, 3);
    assert_eq!(names(&base.refresh().unwrap()), ["id"]);
}
