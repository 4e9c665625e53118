//! Large files, which are uploaded to stores in parts.

use std::io::Write as _;

use crate::places::Place;

on_every_store! { a_large_file_has_all_bytes, a_large_file_that_is_dropped, a_large_file_replaces_another }

/// The size of a file with more than two parts.
const SIZE: usize = (20 << 20) + 3;

fn bytes() -> Vec<u8> {
    (0..SIZE).map(|at| (at % 251) as u8).collect()
}

fn a_large_file_has_all_bytes(place: &Place) {
    let (storage, bytes) = (place.open("t"), bytes());
    let mut file = storage.create_file("data/f.parquet").unwrap();
    // The pieces do not end where the parts end.
    for piece in bytes.chunks(3_000_001) {
        file.write_all(piece).unwrap();
    }
    assert_eq!(file.finish().unwrap(), SIZE as u64);
    assert_eq!(storage.head("data/f.parquet").unwrap().unwrap().size, SIZE as u64);
    assert!(storage.read("data/f.parquet").unwrap() == bytes);
}

/// A large file that is dropped before it is finished never becomes visible. Local directories are left out, because
/// their files have their names from the start.
fn a_large_file_that_is_dropped(place: &Place) {
    if place.is_local() {
        return;
    }
    let storage = place.open("t");
    let mut file = storage.create_file("f").unwrap();
    file.write_all(&bytes()).unwrap();
    assert!(storage.head("f").unwrap().is_none());
    drop(file);
    assert!(storage.head("f").unwrap().is_none());
    assert!(storage.list_after("", "").unwrap().is_empty());
}

fn a_large_file_replaces_another(place: &Place) {
    let (storage, bytes) = (place.open("t"), bytes());
    storage.create_file("f").unwrap().finish().unwrap();
    let mut file = storage.replace_file("f").unwrap();
    file.write_all(&bytes).unwrap();
    assert_eq!(storage.read("f").unwrap(), "");
    file.finish().unwrap();
    assert!(storage.read("f").unwrap() == bytes);
}
