//! A store behind a compressing proxy has weak entity tags, which do not identify the bytes of a file.

use deltalog::{Operation, Snapshot, Storage};
use deltalog_testkit::s3::{S3Server, Settings};
use parquet::file::reader::ChunkReader as _;

use crate::contract::create;
use crate::places::Place;
use crate::rows::{appending, files, ids};

/// A store with weak entity tags is read like a store without tags. No read has a condition on a tag, because the
/// store would refuse it, and the cache is not used. (RFC 9110, 8.8.1 and 13.1.1.)
#[test]
fn weak_tags_are_not_used() {
    let server = S3Server::start_with(Settings { weak_tags: true, ..Settings::default() });
    let place = Place::in_server(&server);
    let directory = tempfile::tempdir().unwrap();
    let open = || -> Storage { place.open("t").with_cache(directory.path(), 1 << 30) };
    let content: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    create(&open(), "f", &content);
    let write = appending(&open(), &[]);
    let files = files(&write, 0..10);
    write.commit(files, Operation::new("WRITE")).unwrap();
    for _ in 0..2 {
        let storage = open();
        let file = storage.open_file("f").unwrap();
        // The bytes that are read when the file is opened are not reused.
        assert!(file.get_bytes(10, 500_000).unwrap() == content[10..500_010]);
        assert_eq!(ids(&Snapshot::open(&storage, None).unwrap()), (0..10).collect::<Vec<_>>());
        assert_eq!(storage.cache_statistics().unwrap().hits, 0);
    }
}
