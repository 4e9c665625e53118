//! Creation and replacement of tables. Protocol: "Table Features for New and Existing Tables", "Supported Features",
//! "Creation of New Log Entries".

use deltalog::engine::commit::Transaction;
use deltalog::engine::protocol::SetTransaction;
use deltalog::{
    Add, ColumnPath, CreationMode, Environment, ErrorKind, Operation, PendingWrite, PrimitiveType, Result,
    Snapshot, Storage, StructField, StructType, TableChange, TableDefinition, WriteOutcome, alter_table,
};

use crate::common::{add, append, empty, environment, overwrite, schema, table};

/// Creates or replaces the table, with the file `path`.
fn define(
    storage: &Storage,
    definition: &TableDefinition,
    path: &str,
    environment: &Environment,
) -> Result<u64> {
    let mode = CreationMode::CreateOrReplace;
    let write = PendingWrite::define(storage, definition, mode, Vec::new(), environment)?.unwrap();
    let operation = write.definition_operation(true);
    Ok(write.commit_or_fail(vec![file(path)], operation)?.version)
}

/// Returns a file with a known number of rows.
fn file(path: &str) -> Add {
    let mut file = add(path);
    file.stats = Some(r#"{"numRecords":5}"#.to_owned());
    file
}

/// A part of a definition, and the features that it requires.
type Part = (fn(&mut TableDefinition), &'static [&'static str]);

const PARTS: [Part; 8] = [
    (|definition| set(definition, "delta.columnMapping.mode", "name"), &["columnMapping"]),
    (|definition| set(definition, "delta.enableRowTracking", "true"), &["rowTracking", "domainMetadata"]),
    (|definition| set(definition, "delta.enableInCommitTimestamps", "true"), &["inCommitTimestamp"]),
    (|definition| set(definition, "delta.enableChangeDataFeed", "true"), &["changeDataFeed"]),
    (|definition| set(definition, "delta.checkpointPolicy", "v2"), &["v2Checkpoint"]),
    (
        |definition| definition.clustering_columns = Some(vec![ColumnPath::new(["id"])]),
        &["clustering", "domainMetadata"],
    ),
    (
        |definition| drop(definition.constraints.insert("c".to_owned(), "id > 0".to_owned())),
        &["checkConstraints"],
    ),
    (
        |definition| {
            let field = |name: &str| StructField::new(name, PrimitiveType::Long, true);
            let fields = vec![
                field("id"),
                field("g").generated_as("id + 1"),
                field("d").with_default("1"),
                field("i").with_identity(1, 1, true),
            ];
            definition.schema = StructType::try_new(fields).unwrap();
        },
        &["generatedColumns", "allowColumnDefaults", "identityColumns"],
    ),
];

fn set(definition: &mut TableDefinition, name: &str, value: &str) {
    definition.configuration.insert(name.to_owned(), value.to_owned());
}

/// Returns the definition that consists of the parts whose bits are set, and the features that it requires.
fn definition(parts: usize) -> (TableDefinition, Vec<&'static str>) {
    let (mut definition, mut features) = (TableDefinition::new(schema()), Vec::new());
    for (index, (apply, required)) in PARTS.iter().enumerate() {
        if parts & (1 << index) != 0 {
            apply(&mut definition);
            features.extend(*required);
        }
    }
    (definition, features)
}

fn features(snapshot: &Snapshot) -> Vec<String> {
    snapshot.protocol().writer_features().iter().map(ToString::to_string).collect()
}

/// A new table supports only the features that its definition requires. A table that replaces another table supports
/// the features that the old or the new definition requires, and otherwise equals a new table.
#[test]
fn a_table_has_the_features_that_its_definition_requires() {
    let all = 1 << PARTS.len();
    // Each definition is used once as the old one and once as the new one. The two definitions of a pair differ a lot.
    for parts in 0..all {
        let (_, storage) = empty();
        let (first, required) = definition(parts);
        define(&storage, &first, "a", &environment()).unwrap();
        let old = Snapshot::open(&storage, None).unwrap();
        let found = features(&old);
        let legacy = ["appendOnly", "invariants"];
        assert!(required.iter().all(|feature| found.iter().any(|other| other == feature)), "{found:?}");
        assert!(
            found.iter().all(|name| required.contains(&name.as_str()) || legacy.contains(&name.as_str()))
        );

        let other = (parts * 37 + 11) % all;
        let (second, also_required) = definition(other);
        assert_eq!(define(&storage, &second, "b", &Environment::system()).unwrap(), 1);
        let new = Snapshot::open(&storage, None).unwrap();
        let both = features(&new);
        assert!(found.iter().all(|feature| both.contains(feature)), "{parts} {other}");
        assert!(also_required.iter().all(|feature| both.iter().any(|other| other == feature)));
        assert_eq!(new.clustering_columns().unwrap().len(), usize::from(other & 32 != 0));
        assert_eq!(
            (new.totals().unwrap().files, new.schema().fields().len()),
            (1, second.schema.fields().len())
        );
        assert_ne!(new.metadata().id, old.metadata().id);
        assert!(new.verify().unwrap().differences.is_empty());
    }
}

/// What another writer does while a table is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    Append,
    Overwrite,
    Property,
    Replacement,
}

const OTHERS: [Other; 4] = [Other::Append, Other::Overwrite, Other::Property, Other::Replacement];

impl Other {
    /// Begins the operation on `base`, and returns a function that commits it.
    fn begin(self, base: &Snapshot) -> Box<dyn FnOnce() -> Result<()>> {
        let environment = Environment::system();
        let commit = |transaction: Transaction| -> Box<dyn FnOnce() -> Result<()>> {
            Box::new(move || transaction.commit_or_fail().map(drop))
        };
        match self {
            Self::Append => commit(append(base, "other", &environment)),
            Self::Overwrite => commit(overwrite(base, "other", &environment).unwrap()),
            Self::Property => {
                let base = base.clone();
                let change = TableChange::SetProperties([("mine".to_owned(), "1".to_owned())].into());
                Box::new(move || alter_table(&base, &change, Default::default(), &environment).map(drop))
            }
            Self::Replacement => {
                let definition = TableDefinition::new(schema());
                let mode = CreationMode::CreateOrReplace;
                let write = PendingWrite::define(base.storage(), &definition, mode, Vec::new(), &environment)
                    .unwrap();
                let write = write.unwrap();
                Box::new(move || {
                    write.commit_or_fail(vec![add("other")], Operation::new("REPLACE TABLE")).map(drop)
                })
            }
        }
    }
}

/// A replacement of the table conflicts with every other operation on the same version: the one that commits first
/// succeeds, and the other one fails.
#[test]
fn replacements_conflict_with_everyone() {
    for other in OTHERS {
        for replacement_wins in [false, true] {
            let (_, storage) = table(&["a"]);
            let base = Snapshot::open(&storage, None).unwrap();
            let (first, second) = match replacement_wins {
                true => (Other::Replacement, other),
                false => (other, Other::Replacement),
            };
            let (first, second) = (first.begin(&base), second.begin(&base));
            first().unwrap();
            let error = second().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CommitConflict, "{other:?} {replacement_wins}: {error}");
            assert_eq!(base.refresh().unwrap().version(), base.version() + 1);
        }
    }
}

/// A create-or-replace that found no table does not replace a table that another writer has created since.
#[test]
fn creations_conflict_with_creations() {
    for (mode, kind) in [
        (CreationMode::ErrorIfExists, ErrorKind::TableAlreadyExists),
        (CreationMode::CreateOrReplace, ErrorKind::CommitConflict),
    ] {
        let (_, storage) = empty();
        let mine = TableDefinition::new(schema());
        let write = PendingWrite::define(&storage, &mine, mode, Vec::new(), &environment()).unwrap().unwrap();
        define(&storage, &mine, "a", &Environment::system()).unwrap();
        let error = write.commit_or_fail(Vec::new(), Operation::new("CREATE TABLE")).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    let (_, storage) = empty();
    let mine = TableDefinition::new(schema());
    let write = PendingWrite::define(&storage, &mine, CreationMode::Ignore, Vec::new(), &environment());
    let write = write.unwrap().unwrap();
    define(&storage, &mine, "a", &Environment::system()).unwrap();
    let outcome = write.commit(Vec::new(), Operation::new("CREATE TABLE")).unwrap();
    assert!(matches!(outcome, WriteOutcome::TableExists(_)), "{outcome:?}");
    assert_eq!((outcome.version(), Snapshot::open(&storage, None).unwrap().version()), (None, 0));
}

/// Protocol: "Transaction Identifiers". Two runs of one job create the table at the same time.
#[test]
fn a_creation_that_another_process_has_made_has_no_effect() {
    let definition = TableDefinition::new(schema());
    for mode in [CreationMode::ErrorIfExists, CreationMode::Ignore, CreationMode::CreateOrReplace] {
        let (_, storage) = empty();
        let begin = || {
            let progress = vec![SetTransaction::new("a", 1)];
            let environment = Environment::system();
            PendingWrite::define(&storage, &definition, mode, progress, &environment).unwrap().unwrap()
        };
        let [first, again] = [begin(), begin()]
            .map(|write| write.commit(vec![file("a")], Operation::new("CREATE TABLE")).unwrap());
        assert_eq!(first.version(), Some(0));
        assert!(matches!(again, WriteOutcome::AlreadyApplied(_)), "{mode:?}: {again:?}");
        assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 0);
    }
}

/// The rows of a replacement were computed from the version that was read. Rows that were committed later must not
/// disappear.
#[test]
fn a_replacement_of_an_older_version_conflicts() {
    let (_, storage) = table(&["a"]);
    let read = Snapshot::open(&storage, None).unwrap();
    let definition = TableDefinition::new(schema());
    let begin = |read: &Snapshot, mode, version: i64| {
        let progress = vec![SetTransaction::new("job", version)];
        PendingWrite::define_on(read, &definition, mode, progress, &Environment::system())
    };
    let replace = |read: &Snapshot, version: i64| -> Result<WriteOutcome> {
        let write = begin(read, CreationMode::CreateOrReplace, version)?.unwrap();
        write.commit(vec![file("mine")], Operation::new("REPLACE TABLE"))
    };
    append(&read, "b", &Environment::system()).commit_or_fail().unwrap();
    let error = replace(&read, 1).unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CommitConflict, Some(2)), "{error}");
    assert!(begin(&read, CreationMode::Ignore, 1).unwrap().is_none());
    let error = begin(&read, CreationMode::ErrorIfExists, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableAlreadyExists);
    let newest = read.refresh().unwrap();
    assert_eq!(newest.totals().unwrap().files, 2);

    // Progress of another application changes nothing that a replacement has read.
    let mut progress = Transaction::new(&newest, Operation::new("TEST"), &Environment::system()).unwrap();
    progress.record_progress("other", 1);
    progress.commit_or_fail().unwrap();
    assert_eq!(replace(&newest, 1).unwrap().version(), Some(4));
    // A repetition of the same write, by a writer that has read the same version, is recognized as already done.
    let again = replace(&newest, 1).unwrap();
    assert!(matches!(again, WriteOutcome::AlreadyApplied(_)), "{again:?}");
}

/// "Clustered Table": without the conflict, the new table could be clustered by a column of the old table.
#[test]
fn a_replacement_conflicts_with_a_change_of_the_clustering_columns() {
    let (_, storage) = table(&[]);
    let alter = |change: TableChange| {
        let base = Snapshot::open(&storage, None).unwrap();
        alter_table(&base, &change, Default::default(), &Environment::system()).unwrap().unwrap()
    };
    alter(TableChange::AddFeatures(vec!["clustering".to_owned()]));
    let new = StructType::try_new(vec![StructField::new("other", PrimitiveType::Long, true)]).unwrap();
    let (definition, mode) = (TableDefinition::new(new), CreationMode::CreateOrReplace);
    let write =
        PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment()).unwrap().unwrap();
    alter(TableChange::ClusterBy(vec![ColumnPath::new(["id"])]));
    let error = write.commit_or_fail(Vec::new(), Operation::new("REPLACE TABLE")).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("domain_changed")));
}
