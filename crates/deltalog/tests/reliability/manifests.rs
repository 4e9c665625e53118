//! Manifests for engines that read Hive's `SymlinkTextInputFormat`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use deltalog::engine::commit::Transaction;
use deltalog::engine::dml::{Request, delete};
use deltalog::engine::parallel::stay_alone;
use deltalog::engine::protocol::{Add, StructType};
use deltalog::{
    CreationMode, Environment, ErrorKind, Operation, PendingWrite, Result, Snapshot, Storage, TableChange,
    TableDefinition, alter_table, generate_manifests,
};
use deltalog_testkit::store::{Fault, FaultyStore, Op};

use crate::common::ids::table;
use crate::common::{add, empty, environment, newest, paths, storage_in, write_commit};

const ENABLED: &str = "delta.compatibility.symlinkFormatManifest.enabled";

fn property(name: &str, value: &str) -> TableChange {
    TableChange::SetProperties([(name.to_owned(), value.to_owned())].into())
}

/// Creates a table that is partitioned by `p` and `q`, with these properties.
fn partitioned(properties: &[(&str, &str)]) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let fields = ["id", "p", "q"]
        .map(|name| format!(r#"{{"name":"{name}","type":"string","nullable":true,"metadata":{{}}}}"#));
    let json = format!(r#"{{"type":"struct","fields":[{}]}}"#, fields.join(","));
    let mut definition = TableDefinition::new(StructType::from_json(&json).unwrap());
    definition.partition_columns = vec!["p".to_owned(), "q".to_owned()];
    definition.configuration =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mode = CreationMode::ErrorIfExists;
    let defined =
        PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment()).unwrap().unwrap();
    let operation = defined.definition_operation(true);
    defined.commit_or_fail(Vec::new(), operation).unwrap();
    (store, storage)
}

fn file(path: &str, p: Option<&str>, q: Option<&str>) -> Add {
    let mut file = add(path);
    file.partition_values =
        [("p", p), ("q", q)].map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).into();
    file
}

/// Adds files. Unless `removed` is empty, also removes all earlier files.
fn commit(storage: &Storage, files: &[Add], removed: &str) -> Result<()> {
    let base = Snapshot::open(storage, None)?;
    let mut transaction = match removed {
        "" => Transaction::new(&base, Operation::new("WRITE"), &environment())?,
        _ => Transaction::overwrite(&base, Operation::new("WRITE"), &environment())?,
    };
    transaction.add_files(files)?;
    transaction.commit_or_fail().map(drop)
}

/// Returns the lines of all manifests, by their paths.
fn manifests(storage: &Storage) -> BTreeMap<String, Vec<String>> {
    let listed = storage.list_after("_symlink_format_manifest", "").unwrap();
    let text = |name: &str| {
        let bytes = storage.read(&format!("_symlink_format_manifest/{name}")).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap().lines().map(str::to_owned).collect()
    };
    listed.into_iter().map(|file| (file.name.clone(), text(&file.name))).collect()
}

fn expected(lines: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let line = |path: &&str| format!("memory:/t/{path}");
    lines.iter().map(|(name, paths)| ((*name).to_owned(), paths.iter().map(line).collect())).collect()
}

#[test]
fn each_partition_with_files_has_a_manifest() {
    let (_store, storage) = partitioned(&[]);
    let files = [
        file("p=1%252F/a%20b", Some("1/"), None),
        file("c", Some("1/"), None),
        file("d", Some("x y"), Some("")),
    ];
    commit(&storage, &files, "").unwrap();
    let done = generate_manifests(&newest(&storage)).unwrap();
    assert_eq!((done.version, done.written, done.deleted), (1, 2, 0));
    let null = "__HIVE_DEFAULT_PARTITION__";
    let first = format!("p=1%2F/q={null}/manifest");
    let second = format!("p=x y/q={null}/manifest");
    assert_eq!(manifests(&storage), expected(&[(&first, &["c", "p=1%2F/a b"]), (&second, &["d"])]));
    // Partitions without files have no manifest.
    commit(&storage, &[file("e", Some("x y"), None)], "all").unwrap();
    let done = generate_manifests(&newest(&storage)).unwrap();
    assert_eq!((done.version, done.written, done.deleted), (2, 1, 1));
    assert_eq!(manifests(&storage), expected(&[(&second, &["e"])]));
}

#[test]
fn a_table_without_partitions_has_one_manifest() {
    let (_store, storage) = crate::common::table(&[]);
    generate_manifests(&newest(&storage)).unwrap();
    assert_eq!(manifests(&storage), expected(&[("manifest", &[])]));
    commit(&storage, &[add("b"), add("a")], "").unwrap();
    generate_manifests(&newest(&storage)).unwrap();
    assert_eq!(manifests(&storage), expected(&[("manifest", &["a", "b"])]));
}

/// If the table property asks for it, manifests are updated after each commit.
#[test]
fn manifests_are_kept() {
    let (store, storage) = partitioned(&[(ENABLED, "true")]);
    let base = newest(&storage);
    commit(&storage, &[file("a", Some("1"), Some("1")), file("b", Some("2"), Some("1"))], "").unwrap();
    assert_eq!(manifests(&storage), expected(&[("p=1/q=1/manifest", &["a"]), ("p=2/q=1/manifest", &["b"])]));
    store.take_calls();
    commit(&storage, &[file("c", Some("2"), Some("1"))], "").unwrap();
    // Only the manifest of the affected partition is written.
    let puts =
        store.take_calls().into_iter().filter(|call| call.op == Op::Put && call.path.contains("symlink"));
    let puts: Vec<String> = puts.map(|call| call.path).collect();
    assert_eq!(puts, ["t/_symlink_format_manifest/p=2/q=1/manifest"]);
    assert_eq!(
        manifests(&storage),
        expected(&[("p=1/q=1/manifest", &["a"]), ("p=2/q=1/manifest", &["b", "c"])])
    );
    // If a commit is based on an older version, the manifests also include files that other writers have added since.
    let mut late = Transaction::new(&base, Operation::new("WRITE"), &environment()).unwrap();
    late.add_files(&[file("d", Some("3"), None)]).unwrap();
    late.commit_or_fail().unwrap();
    assert_eq!(manifests(&storage).len(), 3);
    commit(&storage, &[file("e", Some("1"), Some("1"))], "all").unwrap();
    assert_eq!(manifests(&storage), expected(&[("p=1/q=1/manifest", &["e"])]));
    alter_table(&newest(&storage), &property(ENABLED, "false"), Default::default(), &environment()).unwrap();
    commit(&storage, &[file("f", Some("1"), Some("1"))], "").unwrap();
    assert_eq!(manifests(&storage), expected(&[("p=1/q=1/manifest", &["e"])]));
    alter_table(&newest(&storage), &property(ENABLED, "true"), Default::default(), &environment()).unwrap();
    assert_eq!(manifests(&storage), expected(&[("p=1/q=1/manifest", &["e", "f"])]));
}

/// Each request for manifests that follows a commit fails in every way. The commit succeeds nevertheless, and the
/// manifests can be generated afterwards.
#[test]
fn a_commit_succeeds_even_if_its_manifests_fail() {
    stay_alone();
    let (prepared, storage) = partitioned(&[(ENABLED, "true")]);
    commit(&storage, &[file("a", Some("1"), None), file("b", Some("2"), None)], "").unwrap();
    let run = |storage: &Storage| commit(storage, &[file("c", Some("2"), None)], "all");
    let counted = prepared.copy();
    run(&storage_in(&counted)).unwrap();
    let calls = counted.take_calls();
    assert!(calls.iter().any(|call| call.path.contains("symlink") && call.op == Op::Delete), "{calls:?}");
    for (at, call) in calls.iter().enumerate().filter(|(_, call)| call.path.contains("symlink")) {
        for fault in Fault::of(call.op).iter().chain(&[Fault::CrashBefore, Fault::CrashAfter]).copied() {
            let store = prepared.copy();
            let storage = storage_in(&store);
            store.fail(move |number, _| match number {
                _ if number == at => Some(fault),
                _ if number > at && fault.is_crash() => Some(Fault::CrashBefore),
                _ => None,
            });
            let result = catch_unwind(AssertUnwindSafe(|| run(&storage)));
            store.heal();
            let context = format!("{fault:?} at {call:?}");
            // Unless the process crashes, the commit reports success.
            assert!(fault.is_crash() || matches!(result, Ok(Ok(()))), "{context}");
            assert_eq!(newest(&storage).version(), 2, "{context}");
            generate_manifests(&newest(&storage)).unwrap();
            let null = "p=2/q=__HIVE_DEFAULT_PARTITION__/manifest";
            assert_eq!(manifests(&storage), expected(&[(null, &["c"])]), "{context}");
        }
    }
}

/// After several writers have committed concurrently, the manifests list the files of the newest version.
#[test]
fn manifests_of_several_writers_show_the_newest_version() {
    let (_store, storage) = partitioned(&[(ENABLED, "true")]);
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let storage = &storage;
            scope.spawn(move || {
                for number in 0..6 {
                    let partition = (number % 2).to_string();
                    let files = [file(&format!("{writer}-{number}"), Some(&partition), Some("1"))];
                    loop {
                        let base = newest(storage);
                        let (operation, system) = (Operation::new("WRITE"), Environment::system());
                        let replaces = writer == 0 && number % 3 == 2;
                        let mut transaction = match replaces {
                            true => Transaction::overwrite(&base, operation, &system).unwrap(),
                            false => Transaction::new(&base, operation, &system).unwrap(),
                        };
                        transaction.add_files(&files).unwrap();
                        match transaction.commit_or_fail() {
                            Err(error) if error.kind() == ErrorKind::CommitConflict => {}
                            committed => break drop(committed.unwrap()),
                        }
                    }
                }
            });
        }
    });
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths(&newest(&storage)) {
        let (_, number) = path.split_once('-').unwrap();
        let partition = number.parse::<u8>().unwrap() % 2;
        expected.entry(format!("p={partition}/q=1/manifest")).or_default().push(format!("memory:/t/{path}"));
    }
    assert!(!expected.is_empty());
    assert_eq!(manifests(&storage), expected);
}

/// Adds a file without updating the manifests. Returns the version.
fn append_to(storage: &Storage) -> u64 {
    let version = newest(storage).version() + 1;
    let add = serde_json::json!({"add": {
        "path": format!("of_others_{version}"), "partitionValues": {"p": "1", "q": "1"}, "size": 1,
        "modificationTime": 1, "dataChange": true,
    }});
    write_commit(storage, version, &[add.to_string()]);
    version
}

/// Another writer commits each time a manifest is written. The update still ends: GENERATE fails with an error, and
/// the update after a commit logs a warning.
#[test]
fn an_update_of_manifests_ends_although_other_writers_keep_committing() {
    let busy = || {
        let (store, storage) = partitioned(&[(ENABLED, "true")]);
        commit(&storage, &[file("a", Some("1"), Some("1"))], "").unwrap();
        let (other, mut version) = (storage_in(&store.reconnect()), 1);
        store.fail(move |_, call| {
            // The other writer makes at most 200 commits, so the test ends in any case.
            if call.path.contains("symlink") && matches!(call.op, Op::Put | Op::Create) && version < 200 {
                let other = other.clone();
                version = std::thread::spawn(move || append_to(&other)).join().unwrap();
            }
            None
        });
        (store, storage)
    };
    let (store, storage) = busy();
    let error = generate_manifests(&newest(&storage)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("other writers commit faster than manifests are written"), "{error}");
    assert!(newest(&storage).version() < 30, "{}", newest(&storage).version());
    store.heal();
    let version = newest(&storage).version();
    assert_eq!(generate_manifests(&newest(&storage)).unwrap().version, version);
    assert_eq!(manifests(&storage)["p=1/q=1/manifest"].len() as u64, version);

    let (_store, storage) = busy();
    commit(&storage, &[file("b", Some("1"), Some("1"))], "").unwrap();
    assert!(newest(&storage).version() < 30, "{}", newest(&storage).version());
}

#[test]
fn manifests_that_would_lie_are_refused() {
    let (_directory, storage) = table(&[]);
    generate_manifests(&newest(&storage)).unwrap();
    // The table allows deletion vectors, but has none yet.
    let both = alter_table(&newest(&storage), &property(ENABLED, "true"), Default::default(), &environment());
    let error = both.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(
        error.to_string().contains("manifests") && error.to_string().contains("delta.enableDeletionVectors")
    );
    delete(&newest(&storage), Some("id = 1"), Request::new(&crate::common::ids::environment())).unwrap();
    let error = generate_manifests(&newest(&storage)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("REORG") && error.to_string().contains(&storage.url()), "{error}");
    alter_table(
        &newest(&storage),
        &property("delta.enableDeletionVectors", "false"),
        Default::default(),
        &environment(),
    )
    .unwrap();
    let error =
        alter_table(&newest(&storage), &property(ENABLED, "true"), Default::default(), &environment());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported);

    let (_directory, storage) = table(&[("delta.columnMapping.mode", "name")]);
    let error = generate_manifests(&newest(&storage)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("column mapping mode 'name'"), "{error}");

    let (_store, storage) = partitioned(&[]);
    let long = "x".repeat(300);
    commit(&storage, &[file("a", Some(&long), None)], "").unwrap();
    let error = generate_manifests(&newest(&storage)).unwrap_err();
    assert!(error.to_string().contains("too long for the name of a directory"), "{error}");
    assert!(manifests(&storage).is_empty());
}

#[test]
fn tables_with_manifests_and_deletion_vectors_are_not_created() {
    let (_store, storage) = empty();
    let mut definition = TableDefinition::new(crate::common::schema());
    definition.configuration = [(ENABLED.to_owned(), "true".to_owned())].into();
    for (name, kind) in [
        ("delta.enableDeletionVectors", ErrorKind::InvalidArgument),
        ("delta.columnMapping.mode", ErrorKind::Unsupported),
    ] {
        let mut definition = definition.clone();
        let value = if name.ends_with("mode") { "name" } else { "true" };
        definition.configuration.insert(name.to_owned(), value.to_owned());
        let mode = CreationMode::ErrorIfExists;
        let error =
            PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}
