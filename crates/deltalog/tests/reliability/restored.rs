//! RESTORE makes an earlier version the newest one again. Protocol: "Add File and Remove File", "Change Metadata".

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalog::engine::commit::Transaction;
use deltalog::engine::protocol::{DomainMetadata, TableFeature};
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    ColumnPath, ErrorKind, NewColumn, Operation, OptimizeRequest, PendingWrite, PrimitiveType,
    RestoreRequest, Restored, Result, SaveMode, Snapshot, Storage, StructField, StructType, TableChange,
    WriteRequest, alter_table, optimize, restore,
};

use crate::common::ids::{delete_rows, environment, files, ids, table};
use crate::common::{newest, schema};

fn write(storage: &Storage, mode: SaveMode, ids: std::ops::Range<i64>) {
    let request = WriteRequest::new(schema(), mode);
    let write = PendingWrite::begin(storage, request, &environment()).unwrap().unwrap();
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let mut writer = write.writer().unwrap();
    // The values of other columns are generated.
    writer.write(&RecordBatch::try_from_iter([("id", column)]).unwrap()).unwrap();
    let files = writer.finish().unwrap();
    write.commit(files, Operation::new("WRITE")).unwrap();
}

fn change(storage: &Storage, change: &TableChange) {
    alter_table(&newest(storage), change, Default::default(), &environment()).unwrap();
}

fn set(name: &str, value: &str) -> TableChange {
    TableChange::SetProperties([(name.to_owned(), value.to_owned())].into())
}

fn restored(storage: &Storage, version: u64) -> Result<Restored> {
    let base = newest(storage);
    restore(&base, &base.at_version(version)?, RestoreRequest::default(), &environment())
}

/// Every version of a history can be restored from every later one.
#[test]
fn each_version_of_a_history_can_be_restored() {
    let (_directory, storage) = table(&[("delta.enableRowTracking", "true")]);
    delete_rows(&storage, "id = 1 or id = 2");
    write(&storage, SaveMode::Append, 10..20);
    delete_rows(&storage, "id = 3 or id = 15");
    optimize(&newest(&storage), OptimizeRequest::default(), &environment()).unwrap();
    write(&storage, SaveMode::Overwrite, 30..33);
    let versions = newest(&storage).version();
    let content = |version: u64| {
        let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
        let mut files: Vec<_> = listed_files(&snapshot, None)
            .unwrap()
            .into_iter()
            .map(|file| (file.add.path, file.add.deletion_vector, file.add.base_row_id))
            .collect();
        files.sort_by(|a, b| a.0.cmp(&b.0));
        (ids(&snapshot), files)
    };
    for version in (0..versions).chain([2, 0, 3]) {
        let Restored { committed, metrics, .. } = restored(&storage, version).unwrap();
        let committed = committed.unwrap().version;
        assert_eq!(content(committed), content(version), "version {version}");
        let totals = newest(&storage).totals().unwrap();
        assert_eq!((metrics.table_files, metrics.table_bytes), (totals.files, totals.bytes));
    }
    // A version that a RESTORE has committed can be restored, too.
    let (again, before) = (newest(&storage).version(), newest(&storage));
    assert_eq!(
        restored(&storage, again - 3).unwrap().committed.map(|committed| committed.version),
        Some(again + 1)
    );
    assert_eq!(
        restored(&storage, again).unwrap().committed.map(|committed| committed.version),
        Some(again + 2)
    );
    assert_eq!(ids(&newest(&storage)), ids(&before));
    // Row ids that are assigned after the RESTORE are new.
    let high = |snapshot: &Snapshot| {
        let domains = snapshot.domain_metadata().unwrap();
        domains.into_iter().find(|domain| domain.domain == "delta.rowTracking").unwrap().configuration
    };
    let mark = high(&newest(&storage));
    write(&storage, SaveMode::Append, 50..51);
    assert_ne!(high(&newest(&storage)), mark);
}

#[test]
fn restoring_the_current_state_makes_no_commit() {
    let (_directory, storage) = table(&[]);
    delete_rows(&storage, "id = 1");
    restored(&storage, 0).unwrap();
    assert_eq!(restored(&storage, 0).unwrap().committed, None);
    assert_eq!(newest(&storage).version(), 2);
    let base = newest(&storage);
    let of_itself = restore(&base, &base, RestoreRequest::default(), &environment()).unwrap();
    assert_eq!(of_itself.committed, None, "the newest version is there already");
    assert_eq!(newest(&storage).version(), 2);
    assert_eq!(base.at_version(3).unwrap_err().kind(), ErrorKind::VersionNotFound);
    let before = base.at_version(1).unwrap();
    let found = restore(&before, &base, RestoreRequest::default(), &environment());
    assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_commit_says_what_was_done() {
    let (_directory, storage) = table(&[]);
    delete_rows(&storage, "id = 1");
    let mut request = RestoreRequest::default();
    request.dry_run = true;
    let base = newest(&storage);
    let planned = restore(&base, &base.at_version(0).unwrap(), request, &environment()).unwrap();
    assert_eq!((planned.metrics.restored_files, newest(&storage).version()), (1, 1));
    restored(&storage, 0).unwrap();
    let text = storage.read(&format!("_delta_log/{:020}.json", 2)).unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let info: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let info = &info["commitInfo"];
    assert_eq!((&info["operation"], &info["operationParameters"]["version"]), (&"RESTORE".into(), &0.into()));
    assert_eq!(info["operationMetrics"]["numRestoredFiles"], "1", "{info}");
    assert_eq!(info["operationMetrics"]["numOfFilesAfterRestore"], "1", "{info}");
    assert!(!text.contains("\"dataChange\":false"), "{text}");
}

/// Missing data files and missing deletion vector files are found before anything is committed.
#[test]
fn missing_files_are_named_and_nothing_is_committed() {
    let (directory, storage) = table(&[]);
    delete_rows(&storage, "id = 1");
    write(&storage, SaveMode::Append, 10..20);
    let gone = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let vector = gone.filter(|path| path.extension().is_some_and(|kind| kind == "bin")).last().unwrap();
    write(&storage, SaveMode::Overwrite, 0..3);
    std::fs::remove_file(vector).unwrap();
    let base = newest(&storage);
    let error = restored(&storage, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileNotFound);
    let text = error.to_string();
    assert!(text.contains("version 2 cannot be restored: 1 of its files no longer exist"), "{text}");
    assert_eq!(newest(&storage).version(), base.version());
    let mut request = RestoreRequest::default();
    request.ignore_missing_files = true;
    let done = restore(&base, &base.at_version(2).unwrap(), request, &environment()).unwrap();
    assert_eq!((done.metrics.missing_files, done.metrics.table_files), (1, 1));
    assert_eq!(done.metrics.table_bytes, newest(&storage).totals().unwrap().bytes);
    assert_eq!(ids(&newest(&storage)), (10..20).collect::<Vec<i64>>());
}

/// A RESTORE brings back the schema, the properties and the domains of the earlier version, but the protocol keeps its
/// features.
#[test]
fn the_table_is_described_as_it_was() {
    let (_directory, storage) = table(&[("delta.columnMapping.mode", "name"), ("mine", "a")]);
    let domain: DomainMetadata =
        serde_json::from_str(r#"{"domain":"mine","configuration":"later","removed":false}"#).unwrap();
    change(&storage, &TableChange::AddFeatures(vec!["domainMetadata".to_owned()]));
    let first = newest(&storage).version();
    change(&storage, &set("mine", "b"));
    change(&storage, &set("delta.enableInCommitTimestamps", "true"));
    let field = StructField::new("more", PrimitiveType::Long, true);
    change(
        &storage,
        &TableChange::AddColumns(vec![NewColumn::new(deltalog::ColumnPath::new([""; 0]), field)]),
    );
    let mut transaction = Transaction::new(&newest(&storage), Operation::new("SET"), &environment()).unwrap();
    transaction.set_domain(domain.clone()).unwrap();
    transaction.commit_or_fail().unwrap();
    let before = newest(&storage);
    restored(&storage, first).unwrap();
    let after = newest(&storage);
    assert_eq!((after.schema().fields().len(), after.metadata().property("mine")), (1, Some("a")));
    assert!(after.protocol().supports(&TableFeature::InCommitTimestamp));
    assert_eq!(after.metadata().property("delta.enableInCommitTimestamps"), Some("true"));
    // Column ids are never used again.
    let id = |snapshot: &Snapshot| {
        snapshot.metadata().property("delta.columnMapping.maxColumnId").map(str::to_owned)
    };
    assert_eq!(id(&after), id(&before));
    assert!(after.domain_metadata().unwrap().iter().all(|domain| domain.domain != "mine"));
    // The later version can be restored again.
    restored(&storage, before.version()).unwrap();
    assert_eq!(newest(&storage).schema(), before.schema());
    assert!(newest(&storage).domain_metadata().unwrap().contains(&domain));
}

/// "Identity Columns": no value is assigned twice.
#[test]
fn identity_values_continue_after_a_restore() {
    let (_directory, storage) = table(&[]);
    let number = StructField::new("number", PrimitiveType::Long, true).with_identity(1, 1, false);
    let columns = schema();
    let fields = columns.fields().iter().cloned().chain([number]);
    let mut definition = deltalog::TableDefinition::new(StructType::try_new(fields.collect()).unwrap());
    definition.configuration = Default::default();
    let mode = deltalog::CreationMode::CreateOrReplace;
    let defined =
        PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment()).unwrap().unwrap();
    let operation = defined.definition_operation(true);
    defined.commit_or_fail(Vec::new(), operation).unwrap();
    let empty = newest(&storage).version();
    write(&storage, SaveMode::Append, 0..3);
    restored(&storage, empty).unwrap();
    assert_eq!(ids(&newest(&storage)), [0; 0]);
    write(&storage, SaveMode::Append, 0..1);
    let mark = |snapshot: &Snapshot| {
        snapshot.metadata().schema_string.contains("\"delta.identity.highWaterMark\":4")
    };
    assert!(mark(&newest(&storage)), "{}", newest(&storage).metadata().schema_string);
}

/// If the newest version is append-only, a RESTORE may not remove rows. It does not matter whether the earlier version
/// was append-only.
#[test]
fn the_newest_version_decides_whether_a_table_is_append_only() {
    let (_directory, storage) = table(&[]);
    write(&storage, SaveMode::Append, 10..20);
    change(&storage, &set("delta.appendOnly", "true"));
    let protected = newest(&storage).version();
    let error = restored(&storage, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    change(&storage, &set("delta.appendOnly", "false"));
    delete_rows(&storage, "id = 1");
    restored(&storage, protected).unwrap();
    assert_eq!(newest(&storage).metadata().property("delta.appendOnly"), Some("true"));
    assert_eq!(ids(&newest(&storage)).len(), 20);
}

/// If a RESTORE goes back to a protocol without a feature, no properties of the feature remain.
#[test]
fn a_downgrade_leaves_nothing_of_a_feature() {
    let (_directory, storage) = table(&[]);
    change(&storage, &set("delta.enableInCommitTimestamps", "true"));
    change(&storage, &TableChange::ClusterBy(vec![deltalog::ColumnPath::new(["id"])]));
    let base = newest(&storage);
    let mut request = RestoreRequest::default();
    request.allow_protocol_downgrade = true;
    restore(&base, &base.at_version(0).unwrap(), request, &environment()).unwrap();
    let after = newest(&storage);
    assert!(!after.protocol().supports(&TableFeature::InCommitTimestamp));
    assert!(!after.metadata().configuration.keys().any(|key| key.contains("inCommitTimestamp")), "{after:?}");
    assert_eq!(after.metadata().property("delta.enableInCommitTimestamps"), None);
    assert_eq!(after.clustering_columns().unwrap(), Vec::<Vec<String>>::new());
    write(&storage, SaveMode::Append, 10..20);
}

/// A VACUUM that begins while a RESTORE runs is a conflict, because it may delete files that were just found to exist.
#[test]
fn a_concurrent_vacuum_is_a_conflict() {
    let (_directory, storage) = table(&[]);
    delete_rows(&storage, "id = 1");
    let base = newest(&storage);
    let vacuum = Transaction::new(&base, Operation::new("VACUUM START"), &environment()).unwrap();
    vacuum.commit_or_fail().unwrap();
    let earlier = base.at_version(0).unwrap();
    let error = restore(&base, &earlier, RestoreRequest::default(), &environment()).unwrap_err();
    assert_eq!(
        (error.kind(), error.reason()),
        (ErrorKind::CommitConflict, Some("files_vacuumed")),
        "{error}"
    );
    restored(&storage, 0).unwrap();
}

/// "Row Tracking": if row tracking was dropped and enabled again, rows have new ids, which must not be mixed with the
/// earlier ids.
#[test]
fn rows_that_have_other_ids_now_are_not_mixed() {
    let (_directory, storage) = table(&[("delta.enableRowTracking", "true")]);
    write(&storage, SaveMode::Append, 10..20);
    let before = newest(&storage).version();
    delete_rows(&storage, "id < 10");
    deltalog::drop_feature(&newest(&storage), "rowTracking", false, Default::default(), &environment())
        .unwrap();
    change(&storage, &set("delta.enableRowTracking", "true"));
    write(&storage, SaveMode::Append, 30..90);
    let error = restored(&storage, before).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("row tracking was dropped and enabled again"), "{error}");
}

/// "Row Tracking": if the number of rows came from another writer's statistics, two rows might get the same id.
#[test]
fn rows_from_before_row_tracking_get_ids_by_counts_that_are_certain() {
    for (counted, is_restored) in [(None, true), (Some(10), true), (Some(3), false)] {
        let (_directory, storage) = table(&[]);
        let request = WriteRequest::new(schema(), SaveMode::Append);
        let pending = PendingWrite::begin(&storage, request, &environment()).unwrap().unwrap();
        let mut foreign = files(&pending, 10..20);
        for add in &mut foreign {
            add.stats = counted.map(|rows| format!(r#"{{"numRecords":{rows}}}"#));
        }
        pending.commit(foreign, Operation::new("WRITE")).unwrap();
        let before = newest(&storage).version();
        write(&storage, SaveMode::Overwrite, 30..33);
        change(&storage, &set("delta.enableRowTracking", "true"));
        let restored = restored(&storage, before);
        if !is_restored {
            let error = restored.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
            assert!(error.to_string().contains("have 3 rows, but the file has 10"), "{error}");
            continue;
        }
        restored.unwrap();
        let now = newest(&storage);
        assert_eq!(ids(&now), (0..20).collect::<Vec<_>>());
        let listed = listed_files(&now, None).unwrap();
        let mut first: Vec<i64> = listed.iter().filter_map(|file| file.add.base_row_id).collect();
        first.sort_unstable();
        assert_eq!(first, [3, 13], "{counted:?}");
    }
}

/// If another writer commits after the version that the caller has seen, there is a conflict. Otherwise the RESTORE
/// would silently undo that commit.
#[test]
fn a_domain_that_was_set_concurrently_is_a_conflict() {
    let (_directory, storage) = table(&[]);
    // The protocol already has the features, so it does not change again.
    change(&storage, &TableChange::ClusterBy(vec![ColumnPath::new(["id"])]));
    change(&storage, &TableChange::ClusterBy(Vec::new()));
    let earlier = newest(&storage);
    write(&storage, SaveMode::Append, 10..20);
    let base = newest(&storage);
    change(&storage, &TableChange::ClusterBy(vec![ColumnPath::new(["id"])]));
    let clustered = newest(&storage);
    let mut transaction = Transaction::new(&clustered, Operation::new("SET DOMAIN"), &environment()).unwrap();
    let mut domain = DomainMetadata::default();
    (domain.domain, domain.configuration) = ("mine".to_owned(), "{}".to_owned());
    transaction.set_domain(domain).unwrap();
    transaction.commit_or_fail().unwrap();
    for base in [&base, &clustered] {
        let error = restore(base, &earlier, RestoreRequest::default(), &environment()).unwrap_err();
        assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("domain_changed")));
    }
    restore(&newest(&storage), &earlier, RestoreRequest::default(), &environment()).unwrap();
    let now = newest(&storage);
    assert!(now.clustering_columns().unwrap().is_empty());
    assert!(now.domain_metadata().unwrap().iter().all(|domain| domain.domain != "mine"));
}

#[test]
fn a_concurrent_commit_is_a_conflict() {
    let (_directory, storage) = table(&[]);
    delete_rows(&storage, "id = 1");
    let base = newest(&storage);
    write(&storage, SaveMode::Append, 10..20);
    let earlier = base.at_version(0).unwrap();
    let error = restore(&base, &earlier, RestoreRequest::default(), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert_eq!(ids(&newest(&storage)).len(), 19);
}
