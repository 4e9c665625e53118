//! Many writers of one local table: every append is committed exactly once.

use std::collections::BTreeSet;

use deltalog::engine::commit::{Operation, SaveMode};
use deltalog::{Environment, PendingWrite, Snapshot, Storage, WriteRequest};

use crate::common::{add, creation, paths, schema, versions_of};

const WRITERS: usize = 64;
const APPENDS: usize = 20;

fn request() -> WriteRequest {
    WriteRequest::new(schema(), SaveMode::Append)
}

#[test]
fn every_append_is_committed_exactly_once() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let environment = Environment::system();
    creation(&storage, &environment).commit_or_fail().unwrap();
    let commits: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (storage, environment) = (&storage, &environment);
                scope.spawn(move || {
                    let append = |number| {
                        let write = PendingWrite::begin(storage, request(), environment).unwrap().unwrap();
                        write
                            .commit_or_fail(vec![add(&format!("{writer}-{number}"))], Operation::new("WRITE"))
                            .unwrap()
                    };
                    (0..APPENDS).map(append).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for own in &commits {
        assert!(own.is_sorted_by(|a, b| a.version < b.version), "the commits of a writer are in order");
    }
    let versions: BTreeSet<u64> = commits.iter().flatten().map(|committed| committed.version).collect();
    let last = (WRITERS * APPENDS) as u64;
    assert!(versions.into_iter().eq(1..=last), "the versions are consecutive and each has one writer");
    let some = commits[WRITERS / 2].last().unwrap();
    assert_eq!(versions_of(&storage, some), [some.version]);
    let snapshot = Snapshot::open(&storage, None).unwrap();
    assert_eq!(snapshot.version(), last);
    let mut expected: Vec<String> = (0..WRITERS)
        .flat_map(|writer| (0..APPENDS).map(move |number| format!("{writer}-{number}")))
        .collect();
    expected.sort();
    assert_eq!(paths(&snapshot), expected);
}
