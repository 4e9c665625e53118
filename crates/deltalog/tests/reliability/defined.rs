//! Tables that are created and replaced. Protocol: "Table Features for New and Existing Tables", "Supported Features",
//! "Creation of New Log Entries".

use deltalog::engine::transaction::Transaction;
use deltalog::{
    Add, ColumnPath, CreationMode, Environment, ErrorKind, Operation, PendingWrite, PrimitiveType, Result,
    Snapshot, Storage, StructField, StructType, TableChange, TableDefinition, alter_table,
};

use crate::common::{add, append, empty, environment, overwrite, schema, table};

/// Creates the table or replaces it, with the file `path`.
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

/// What a definition may ask for, and the features that this requires.
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

/// Returns the definition that has those parts whose bit is set, and the features that it requires.
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

/// A new table supports what its definition requires and nothing else. One that replaces it supports what both require,
/// and is otherwise as a new one.
#[test]
fn features_are_those_that_definitions_require() {
    let all = 1 << PARTS.len();
    // Every definition once as the first and once as the second, with very different ones.
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

/// What another writer may do while a table is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    Append,
    Overwrite,
    Property,
    Replacement,
}

const OTHERS: [Other; 4] = [Other::Append, Other::Overwrite, Other::Property, Other::Replacement];

impl Other {
    /// Begins on `base`, and returns what commits it.
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

/// Whoever is first wins, and the other one has read a table that is no longer there.
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

/// A table that another writer creates meanwhile is not replaced by a definition that has not seen it.
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
}
