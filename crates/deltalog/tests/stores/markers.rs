//! Hadoop, web consoles and other tools create objects that only represent directories. Such markers are not treated
//! as files.

use deltalog::engine::distributed::delete_files;
use deltalog::engine::storage::FileMeta;
use deltalog::{Environment, ErrorKind, Snapshot, Table, clean_up_log, write_checkpoint};

use crate::contract::create;
use crate::places::Place;
use crate::rows::{append, ids, newest};

on_every_store! { s3_server, [markers_of_directories] }
on_every_store! { azurite, [markers_of_directories] }
on_every_store! { fake_gcs, [markers_of_directories] }

/// The markers that clients leave at a table's location, in the order in which the directories are created.
const MARKERS: [&str; 12] = [
    "t/",
    "t_$folder$",
    "t",
    "t/_delta_log/",
    "t/_delta_log_$folder$",
    "t/_delta_log",
    "t/_delta_log/_sidecars/",
    "t/_delta_log/_sidecars_$folder$",
    "t/_delta_log/_sidecars",
    "t/part=a b/",
    "t/part=a b_$folder$",
    "t/part=a b",
];

fn markers_of_directories(place: &Place) {
    // If a location contains nothing but markers, it is not a table, and a table may be created there.
    for marker in MARKERS {
        place.create_marker(marker);
    }
    let storage = place.open("t");
    assert!(!Table::exists(&storage).unwrap());
    assert_eq!(Snapshot::open(&storage, None).unwrap_err().kind(), ErrorKind::NotATable);
    append(&storage, 0..6);
    // Clients may create the markers again at any time.
    for marker in MARKERS {
        place.create_marker(marker);
    }
    for version in 1..12 {
        append(&storage, version * 6..version * 6 + 6);
    }
    let snapshot = newest(&place.open("t"));
    assert_eq!((snapshot.version(), ids(&snapshot)), (11, (0..72).collect::<Vec<_>>()));

    let files = storage.list_after("", "").unwrap();
    // An object that marks an empty directory cannot be distinguished from an empty file.
    let is_file = |file: &&FileMeta| file.size > 0 || file.name == "_delta_log/_sidecars";
    assert_eq!(files.iter().find(|file| !is_file(file)), None);
    let in_partitions = |file: &&FileMeta| file.name.starts_with("part=");
    assert_eq!(files.iter().filter(in_partitions).count(), 36);
    assert!(!storage.list_directory_after("_delta_log", "").unwrap().is_empty());

    write_checkpoint(&newest(&storage), &Environment::system()).unwrap();
    let later = Environment::new(|| Environment::system().now_ms() + 40 * 86_400_000, uuid::Uuid::new_v4);
    let cleaned = clean_up_log(&newest(&storage), &later, false).unwrap();
    assert!(
        cleaned.files.iter().all(|file| !MARKERS.iter().any(|marker| marker.ends_with(file))),
        "{cleaned:?}"
    );
    assert_eq!(ids(&newest(&place.open("t"))), (0..72).collect::<Vec<_>>());

    // A failed write has left these files behind.
    create(&storage, "_write/part=a/f", b"x");
    for marker in ["t/_write/", "t/_write/part=a/", "t/_write/part=a", "t/_write/part=b/"] {
        place.create_marker(marker);
    }
    delete_files(&storage, "_write").unwrap();
    assert!(storage.get("_write/part=a/f").unwrap().is_none());
    assert_eq!(ids(&newest(&storage)).len(), 72);
}
