use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;

use super::{CommitCoordinator, CoordinatorEntry, PutOutcome, Storage};
use crate::error::{Error, ErrorKind, Result};

/// How the next call of the coordinator fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The next put fails and has no effect.
    PutBefore,
    /// The next put fails, but has an effect.
    PutAfter,
    /// The next put fails but has an effect, and the query after it fails, too.
    PutAfterAndGet,
    /// Entries cannot be completed.
    Complete,
    /// Every put is refused.
    Denied,
}

#[derive(Debug)]
struct InMemoryCoordinator {
    entries: Mutex<BTreeMap<(String, String), CoordinatorEntry>>,
    fault: Mutex<Fault>,
}

impl InMemoryCoordinator {
    fn new() -> Arc<Self> {
        Arc::new(Self { entries: Mutex::default(), fault: Mutex::new(Fault::None) })
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<(String, String), CoordinatorEntry>> {
        self.entries.lock().unwrap()
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    /// Returns whether the current fault is `fault`. If so, `next` becomes the current fault.
    fn takes(&self, fault: Fault, next: Fault) -> bool {
        let mut current = self.fault.lock().unwrap();
        let is = *current == fault;
        if is {
            *current = next;
        }
        is
    }

    fn only(&self) -> CoordinatorEntry {
        let entries = self.entries();
        assert_eq!(entries.len(), 1);
        entries.values().next().unwrap().clone()
    }
}

fn key(entry: &CoordinatorEntry) -> (String, String) {
    (entry.table_path.clone(), entry.file_name.clone())
}

fn lost() -> Error {
    Error::new(ErrorKind::Unavailable, "no answer")
}

impl CommitCoordinator for InMemoryCoordinator {
    fn put_if_absent(&self, entry: &CoordinatorEntry) -> Result<bool> {
        if self.takes(Fault::Denied, Fault::Denied) {
            return Err(Error::new(ErrorKind::PermissionDenied, "denied"));
        }
        if self.takes(Fault::PutBefore, Fault::None) {
            return Err(lost());
        }
        let is_new = !self.entries().contains_key(&key(entry));
        self.entries().entry(key(entry)).or_insert_with(|| entry.clone());
        if self.takes(Fault::PutAfter, Fault::None) || *self.fault.lock().unwrap() == Fault::PutAfterAndGet {
            return Err(lost());
        }
        Ok(is_new)
    }

    fn get(&self, table_path: &str, file_name: &str) -> Result<Option<CoordinatorEntry>> {
        let found = self.entries().get(&(table_path.to_owned(), file_name.to_owned())).cloned();
        if found.is_some() && self.takes(Fault::PutAfterAndGet, Fault::None) {
            return Err(lost());
        }
        Ok(found)
    }

    fn newest(&self, table_path: &str) -> Result<Option<CoordinatorEntry>> {
        let entries = self.entries();
        Ok(entries.values().rfind(|entry| entry.table_path == table_path).cloned())
    }

    fn complete(&self, entry: &CoordinatorEntry) -> Result<()> {
        if self.takes(Fault::Complete, Fault::Complete) {
            return Err(lost());
        }
        if let Some(found) =
            self.entries().get_mut(&key(entry)).filter(|found| found.temp_path == entry.temp_path)
        {
            found.is_complete = true;
        }
        Ok(())
    }
}

fn commit(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}

struct Fixture {
    objects: Arc<InMemory>,
    coordinator: Arc<InMemoryCoordinator>,
    storage: Storage,
}

fn fixture() -> Fixture {
    let objects = Arc::new(InMemory::new());
    let coordinator = InMemoryCoordinator::new();
    let url = Url::parse("s3://bucket/my%20table/").unwrap();
    let storage = Storage::with_immediate_store(url, Arc::clone(&objects) as _).unwrap();
    let storage = storage.with_coordinator(Arc::clone(&coordinator) as _);
    Fixture { objects, coordinator, storage }
}

impl Fixture {
    fn put(&self, version: u64, bytes: &str) -> PutOutcome {
        self.storage.put_if_absent(&commit(version), bytes.to_owned()).unwrap()
    }

    fn object(&self, path: &str) -> Option<Bytes> {
        let path = Path::from(format!("my table/{path}"));
        futures::executor::block_on(async {
            match self.objects.get(&path).await {
                Ok(found) => Some(found.bytes().await.unwrap()),
                Err(_) => None,
            }
        })
    }

    fn write(&self, path: &str, bytes: &str) {
        let path = Path::from(format!("my table/{path}"));
        futures::executor::block_on(self.objects.put(&path, bytes.to_owned().into())).unwrap();
    }

    fn delete(&self, path: &str) {
        futures::executor::block_on(self.objects.delete(&Path::from(format!("my table/{path}")))).unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.storage.list_after("_delta_log", "").unwrap().into_iter().map(|file| file.name).collect()
    }

    /// Puts the entry of a writer that has died before copying its commit to the log.
    fn leave(&self, version: u64, bytes: &str) -> CoordinatorEntry {
        let name = format!("{version:020}.json");
        let entry = CoordinatorEntry::new("s3a://bucket/my table", &name, format!(".tmp/{name}.dead"));
        self.write(&format!("_delta_log/{}", entry.temp_path), bytes);
        assert!(self.coordinator.put_if_absent(&entry).unwrap());
        entry
    }
}

#[test]
fn a_committed_version_is_in_the_log_and_its_entry_is_complete() {
    let fixture = fixture();
    assert!(matches!(fixture.put(0, "a"), PutOutcome::Created));
    let entry = fixture.coordinator.only();
    assert_eq!(entry.table_path, "s3a://bucket/my table");
    assert_eq!(entry.file_name, "00000000000000000000.json");
    assert!(entry.temp_path.starts_with(".tmp/00000000000000000000.json."));
    assert!(entry.is_complete);
    assert_eq!(fixture.names(), ["00000000000000000000.json"], "the temporary file is deleted");
    assert!(matches!(fixture.put(0, "b"), PutOutcome::AlreadyExists));
    assert!(matches!(fixture.put(1, "b"), PutOutcome::Created));
    assert_eq!(fixture.object(&commit(0)).unwrap(), "a");
}

#[test]
fn the_path_of_a_table_is_spelled_as_in_hadoop() {
    let path = |url: &str| {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let storage = Storage::with_immediate_store(Url::parse(url).unwrap(), store).unwrap();
        let scheme = storage.root().scheme().to_owned();
        storage.table_path(&scheme)
    };
    assert_eq!(path("s3://bucket/a/b%20c%25/"), "s3://bucket/a/b c%");
    assert_eq!(path("s3://bucket"), "s3://bucket/");
    assert_eq!(path("s3://bucket/"), "s3://bucket/");
    assert_eq!(path("file:///a/b"), "file:/a/b");
    assert_eq!(path("abfss://c@a.dfs.core.windows.net/t"), "abfss://c@a.dfs.core.windows.net/t");
}

/// The commit is copied to the log by a listing, by a read by name, and by step 1 of the next commit.
#[test]
fn a_commit_is_recovered_if_its_writer_has_died() {
    type Recover = fn(&Fixture);
    let ways: [(&str, Recover); 4] = [
        ("list", |fixture| assert_eq!(fixture.names().len(), 2)),
        ("get", |fixture| assert_eq!(fixture.storage.get(&commit(1)).unwrap().unwrap(), "dead")),
        ("head", |fixture| assert_eq!(fixture.storage.head(&commit(1)).unwrap().unwrap().size, 4)),
        ("put", |fixture| assert!(matches!(fixture.put(2, "c"), PutOutcome::Created))),
    ];
    for (name, recover) in ways {
        let fixture = fixture();
        fixture.put(0, "a");
        let entry = fixture.leave(1, "dead");
        assert!(fixture.object(&commit(1)).is_none());
        recover(&fixture);
        assert_eq!(fixture.object(&commit(1)).unwrap(), "dead", "{name}");
        assert!(
            fixture.coordinator.get(&entry.table_path, &entry.file_name).unwrap().unwrap().is_complete,
            "{name}"
        );
        assert!(!fixture.names().iter().any(|name| name.contains(".tmp")), "{name}");
    }
}

/// A writer wants the version that a dead writer has committed. It loses, and learns which commit has won.
#[test]
fn the_entry_decides_before_the_file_exists() {
    let fixture = fixture();
    fixture.leave(0, "dead");
    assert!(matches!(fixture.put(0, "late"), PutOutcome::AlreadyExists));
    assert_eq!(fixture.storage.get(&commit(0)).unwrap().unwrap(), "dead");
    assert_eq!(fixture.names().len(), 1);
}

/// The writer has copied its commit, but died before it notified the coordinator.
#[test]
fn an_entry_whose_file_exists_is_completed() {
    let fixture = fixture();
    fixture.coordinator.set(Fault::Complete);
    assert!(matches!(fixture.put(0, "a"), PutOutcome::Created));
    assert!(!fixture.coordinator.only().is_complete);
    fixture.coordinator.set(Fault::None);
    fixture.delete(&format!("_delta_log/{}", fixture.coordinator.only().temp_path));
    assert_eq!(fixture.names().len(), 1, "the temporary file is not used");
    assert!(fixture.coordinator.only().is_complete);
    assert_eq!(fixture.object(&commit(0)).unwrap(), "a");
}

#[test]
fn the_outcome_of_a_lost_response_is_determined() {
    for fault in [Fault::PutBefore, Fault::PutAfter] {
        let fixture = fixture();
        fixture.coordinator.set(fault);
        assert!(matches!(fixture.put(0, "a"), PutOutcome::Created), "{fault:?}");
        assert!(fixture.coordinator.only().is_complete);
        assert_eq!(fixture.names().len(), 1);
    }
    let fixture = fixture();
    fixture.coordinator.set(Fault::PutAfterAndGet);
    assert!(matches!(fixture.put(0, "a"), PutOutcome::Unknown(_)));
    // A writer reads its commit back in the same way.
    assert_eq!(fixture.storage.get(&commit(0)).unwrap().unwrap(), "a");
}

#[test]
fn a_refusal_of_the_coordinator_commits_nothing() {
    let fixture = fixture();
    fixture.coordinator.set(Fault::Denied);
    let refused = fixture.storage.put_if_absent(&commit(0), "a").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    assert!(fixture.coordinator.entries().is_empty());
    assert!(fixture.storage.get(&commit(0)).unwrap().is_none());
}

/// The entry of version 0 expires after a slow writer has checked the log, but before that writer puts its own entry.
#[test]
fn a_commit_is_kept_if_an_entry_is_put_after_it() {
    #[derive(Debug)]
    struct Slow(Arc<InMemory>, Arc<InMemoryCoordinator>);
    impl CommitCoordinator for Slow {
        fn put_if_absent(&self, entry: &CoordinatorEntry) -> Result<bool> {
            let path = Path::from(format!("my table/_delta_log/{}", entry.file_name));
            futures::executor::block_on(self.0.put(&path, "first".into())).unwrap();
            self.1.put_if_absent(entry)
        }
        fn get(&self, table_path: &str, file_name: &str) -> Result<Option<CoordinatorEntry>> {
            self.1.get(table_path, file_name)
        }
        fn newest(&self, table_path: &str) -> Result<Option<CoordinatorEntry>> {
            self.1.newest(table_path)
        }
        fn complete(&self, entry: &CoordinatorEntry) -> Result<()> {
            self.1.complete(entry)
        }
    }
    let mut fixture = fixture();
    let slow = Slow(Arc::clone(&fixture.objects), Arc::clone(&fixture.coordinator));
    fixture.storage = fixture.storage.clone().with_coordinator(Arc::new(slow));
    assert!(matches!(fixture.put(0, "second"), PutOutcome::AlreadyExists));
    assert_eq!(fixture.storage.get(&commit(0)).unwrap().unwrap(), "first");
    assert!(fixture.coordinator.only().is_complete);
}

#[test]
fn an_entry_without_files_is_an_error() {
    let fixture = fixture();
    let entry = fixture.leave(0, "dead");
    fixture.delete(&format!("_delta_log/{}", entry.temp_path));
    let error = fixture.storage.list_after("_delta_log", "").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptLog);
    assert!(error.to_string().contains("delete the entries of 's3a://bucket/my table'"), "{error}");
    // A complete entry without a file belongs to an earlier table.
    fixture.coordinator.complete(&entry).unwrap();
    assert!(fixture.names().is_empty());
    let error = fixture.storage.put_if_absent(&commit(0), "a").unwrap_err();
    assert!(error.to_string().contains("entry for 00000000000000000000.json"), "{error}");
    assert!(fixture.names().is_empty(), "the temporary file is deleted");
}

#[test]
fn a_version_is_not_skipped() {
    let fixture = fixture();
    fixture.put(0, "a");
    let error = fixture.storage.put_if_absent(&commit(2), "c").unwrap_err();
    assert!(error.to_string().contains("does not have the version before it"), "{error}");
    assert_eq!(fixture.names().len(), 1);
}

#[test]
fn files_other_than_commits_are_not_coordinated() {
    let fixture = fixture();
    for path in ["_delta_log/_last_checkpoint", "_delta_log/00000000000000000001.crc", "a.json"] {
        assert!(matches!(fixture.storage.put_if_absent(path, "x").unwrap(), PutOutcome::Created));
    }
    assert!(fixture.coordinator.entries().is_empty());
}

/// Each version has exactly one winner.
#[test]
fn of_concurrent_writers_exactly_one_wins() {
    let directory = tempfile::tempdir().unwrap();
    let coordinator = InMemoryCoordinator::new();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let storage = storage.with_coordinator(Arc::clone(&coordinator) as _);
    for version in 0..20 {
        let winners = AtomicU64::new(0);
        let bytes = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for racer in 0..16 {
                let (storage, winners, bytes) = (&storage, &winners, &bytes);
                scope.spawn(move || {
                    match storage.put_if_absent(&commit(version), racer.to_string()).unwrap() {
                        PutOutcome::Created => {
                            winners.fetch_add(1, Ordering::Relaxed);
                            bytes.store(racer, Ordering::Relaxed);
                        }
                        PutOutcome::AlreadyExists => {
                            assert!(storage.get(&commit(version)).unwrap().is_some());
                        }
                        PutOutcome::Unknown(error) => panic!("{error}"),
                    }
                });
            }
        });
        assert_eq!(winners.into_inner(), 1);
        assert_eq!(storage.read(&commit(version)).unwrap(), bytes.into_inner().to_string());
    }
    assert!(coordinator.entries().values().all(|entry| entry.is_complete));
    assert_eq!(storage.list_after("_delta_log", "").unwrap().len(), 20);
}
