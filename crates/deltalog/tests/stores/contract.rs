//! The guarantees of `Storage`, on which everything else depends.

use std::io::Read;

use deltalog::engine::storage::{FileMeta, FileState, PutOutcome, Replacement};
use deltalog::{ErrorKind, Storage};
use parquet::file::reader::ChunkReader;

use crate::places::Place;

on_every_store! {
    a_file_is_created_once, one_of_many_creates_a_file, a_put_replaces, a_file_is_read_in_parts, a_file_that_is_missing,
    a_deleted_file_is_gone, listings, long_listings, a_replaced_file_has_another_tag,
    only_the_file_that_was_read_is_replaced, one_of_several_replacements_of_a_file_succeeds, times_come_from_the_clock,
}

fn names(files: &[FileMeta]) -> Vec<&str> {
    files.iter().map(|file| file.name.as_str()).collect()
}

fn a_file_is_created_once(place: &Place) {
    let storage = place.open("t");
    let path = "_delta_log/00000000000000000000.json";
    let first = storage.put_if_absent(path, "first".as_bytes().to_vec()).unwrap();
    assert!(matches!(first, PutOutcome::Created), "{first:?}");
    let second = storage.put_if_absent(path, "second".as_bytes().to_vec()).unwrap();
    assert!(matches!(second, PutOutcome::AlreadyExists), "{second:?}");
    assert_eq!(storage.read(path).unwrap(), "first");
    assert!(!storage.put_beside_log_if_absent(path, "third".into()).unwrap());
    assert!(storage.put_beside_log_if_absent("_delta_log/other", "third".into()).unwrap());
}

pub fn one_of_many_creates_a_file(place: &Place) {
    let storage = place.open("t");
    let rounds = if place.is_hdfs() { 15 } else { 50 };
    for round in 0..rounds {
        let path = format!("_delta_log/{round:020}.json");
        let created: Vec<usize> = std::thread::scope(|scope| {
            let (storage, path) = (&storage, path.as_str());
            let create = |writer: usize| {
                let outcome = storage.put_if_absent(path, writer.to_string().into_bytes()).unwrap();
                match outcome {
                    PutOutcome::Created => Some(writer),
                    PutOutcome::AlreadyExists => None,
                    PutOutcome::Unknown(error) => panic!("{error}"),
                }
            };
            let writers: Vec<_> = (0..16).map(|writer| scope.spawn(move || create(writer))).collect();
            writers.into_iter().filter_map(|writer| writer.join().unwrap()).collect()
        });
        let [winner] = created[..] else { panic!("{path} was created by {created:?}") };
        assert_eq!(storage.read(&path).unwrap(), winner.to_string());
    }
}

fn a_put_replaces(place: &Place) {
    let storage = place.open("t");
    storage.create_file("directory/f").unwrap().finish().unwrap();
    assert_eq!(storage.read("directory/f").unwrap(), "");
    for content in ["first", "", "second"] {
        storage.put("directory/f", content.into()).unwrap();
        assert_eq!(storage.read("directory/f").unwrap(), content);
        assert_eq!(storage.head("directory/f").unwrap().unwrap().size, content.len() as u64);
    }
}

fn a_file_is_read_in_parts(place: &Place) {
    let storage = place.open("t");
    let bytes: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
    create(&storage, "f", &bytes);
    let file = storage.open_file("f").unwrap();
    assert_eq!(file.size(), 100_000);
    for (start, length) in [(0, 1), (0, 100_000), (1, 10), (70_000, 20_000), (99_999, 1), (100_000, 0)] {
        let found = file.get_bytes(start as u64, length).unwrap();
        assert!(found == bytes[start..start + length], "{length} bytes from {start}");
    }
    assert!(file.get_bytes(99_999, 2).is_err());
    let mut end = Vec::new();
    file.get_read(60_000).unwrap().read_to_end(&mut end).unwrap();
    assert!(end == bytes[60_000..]);
}

fn a_file_that_is_missing(place: &Place) {
    let storage = place.open("t");
    assert!(storage.get("f").unwrap().is_none());
    assert!(storage.head("f").unwrap().is_none());
    assert_eq!(storage.read("f").unwrap_err().kind(), ErrorKind::FileNotFound);
    assert_eq!(storage.open_file("f").unwrap_err().kind(), ErrorKind::FileNotFound);
    assert!(storage.list_after("", "").unwrap().is_empty());
    assert!(storage.list_after("_delta_log", "").unwrap().is_empty());
    storage.delete("f").unwrap();
    // A directory is not a file.
    create(&storage, "directory/f", b"x");
    assert!(storage.head("directory").unwrap().is_none());
}

fn a_deleted_file_is_gone(place: &Place) {
    let storage = place.open("t");
    create(&storage, "f", b"x");
    storage.delete("f").unwrap();
    assert!(storage.get("f").unwrap().is_none());
    assert!(storage.list_after("", "").unwrap().is_empty());
    assert!(matches!(storage.put_if_absent("f", b"y".to_vec()).unwrap(), PutOutcome::Created));
}

fn listings(place: &Place) {
    let storage = place.open("t");
    for path in ["log/a", "log/b", "log/b.json", "log/c/d", "log/c/e/f", "log/z", "log2/a", "log.a", "logs"] {
        create(&storage, path, path.as_bytes());
    }
    let all = storage.list_after("log", "").unwrap();
    assert_eq!(names(&all), ["a", "b", "b.json", "c/d", "c/e/f", "z"]);
    assert_eq!(all.iter().map(|file| file.size).collect::<Vec<_>>(), [5, 5, 10, 7, 9, 5]);
    assert_eq!(names(&storage.list_directory_after("log", "").unwrap()), ["a", "b", "b.json", "z"]);
    // A listing that starts after a name excludes this name, which need not exist.
    assert_eq!(names(&storage.list_after("log", "b").unwrap()), ["b.json", "c/d", "c/e/f", "z"]);
    assert_eq!(names(&storage.list_after("log", "b0").unwrap()), ["c/d", "c/e/f", "z"]);
    assert_eq!(names(&storage.list_after("log", "c/d").unwrap()), ["c/e/f", "z"]);
    assert_eq!(names(&storage.list_directory_after("log", "b").unwrap()), ["b.json", "z"]);
    assert!(storage.list_after("log", "z").unwrap().is_empty());
    assert!(storage.list_after("lo", "").unwrap().is_empty());
    assert_eq!(storage.list_after("", "").unwrap().len(), 9);
    assert_eq!(names(&storage.list_after("", "log/z").unwrap()), ["log2/a", "logs"]);
}

/// On most servers, the directory has more files than fit on one page of a listing, which has 1,000 names. Azurite's
/// pages have 5,000 names.
fn long_listings(place: &Place) {
    // 1,050 files are more than one page. HDFS gets fewer files, because its client takes up to half a second for each.
    let files = if place.is_hdfs() { 50 } else { 1_050 };
    let storage = place.open("t");
    let name = |number: usize| format!("{number:020}.json");
    create(&storage, "log/0", b"");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let storage = &storage;
            scope.spawn(move || {
                for number in (0..files).filter(|number| number % 8 == thread) {
                    storage.put(&format!("log/{}", name(number)), "x".into()).unwrap();
                }
            });
        }
    });
    storage.delete("log/0").unwrap();
    let expected: Vec<String> = (0..files).map(name).collect();
    assert_eq!(names(&storage.list_directory_after("log", "").unwrap()), expected);
    assert_eq!(names(&storage.list_after("log", &name(files - 3)).unwrap()), expected[files - 2..]);
}

fn only_the_file_that_was_read_is_replaced(place: &Place) {
    let storage = place.open("t");
    create(&storage, "log/other", b"x");
    assert!(storage.get_with_state("log/f").unwrap().is_none());
    let put = |text: &'static str, read: Option<&FileState>| {
        storage.put_if_unchanged("log/f", text.into(), read).unwrap()
    };
    assert_eq!(put("a", None), Replacement::Done);
    assert_eq!(put("b", None), Replacement::Changed);
    let (bytes, first) = storage.get_with_state("log/f").unwrap().unwrap();
    assert_eq!(bytes, "a");
    assert_eq!(put("two", Some(&first)), Replacement::Done);
    // HDFS cannot compare entity tags, so it replaces the existing file.
    let is_replaced = put("three", Some(&first)) == Replacement::Done;
    assert_eq!(is_replaced, place.is_hdfs());
    assert_eq!(storage.read("log/f").unwrap(), if is_replaced { "three" } else { "two" });
}

/// Each writer reads a number and writes it back, increased by one. No increase is lost. HDFS is left out, because it
/// cannot compare entity tags, and Windows, because it cannot lock directories.
fn one_of_several_replacements_of_a_file_succeeds(place: &Place) {
    if place.is_hdfs() || (cfg!(windows) && place.is_local()) {
        return;
    }
    const WRITERS: u64 = 8;
    const ROUNDS: u64 = 10;
    let storage = place.open("t");
    create(&storage, "log/f", b"0");
    let add_one = || {
        loop {
            let (bytes, state) = storage.get_with_state("log/f").unwrap().unwrap();
            let number: u64 = std::str::from_utf8(&bytes).unwrap().parse().unwrap();
            let bytes = (number + 1).to_string().into();
            if storage.put_if_unchanged("log/f", bytes, Some(&state)).unwrap() == Replacement::Done {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| add_one()));
        }
    });
    assert_eq!(storage.read("log/f").unwrap(), (WRITERS * ROUNDS).to_string());
}

/// A listing shows the same entity tag as a read of the file, so the tag shows whether the file was replaced.
fn a_replaced_file_has_another_tag(place: &Place) {
    let storage = place.open("t");
    create(&storage, "f", b"first");
    let listed = || storage.list_after("", "").unwrap().remove(0);
    let (first, first_listed) = (storage.head("f").unwrap().unwrap(), listed());
    assert_eq!((first.size, first.tag), (first_listed.size, first_listed.tag));
    assert!(first.tag.is_some());
    storage.put("f", "other".into()).unwrap();
    let second = storage.head("f").unwrap().unwrap();
    assert_ne!(first.tag, second.tag);
    assert_eq!(listed().tag, second.tag);
}

/// The modification time of a new file is close to the current time. Time travel and log cleanup depend on this.
fn times_come_from_the_clock(place: &Place) {
    let storage = place.open("t");
    create(&storage, "f", b"x");
    let now = deltalog::Environment::system().now_ms();
    let times = [storage.head("f").unwrap().unwrap(), storage.list_after("", "").unwrap().remove(0)];
    for time in times.map(|file| file.modified_ms) {
        assert!((now - time).abs() < 600_000, "it is {now}, and the file was written at {time}");
    }
}

pub fn create(storage: &Storage, path: &str, bytes: &[u8]) {
    use std::io::Write as _;

    let mut file = storage.create_file(path).unwrap();
    file.write_all(bytes).unwrap();
    file.finish().unwrap();
}
