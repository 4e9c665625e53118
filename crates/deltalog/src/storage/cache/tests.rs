//! Tests of what the cache on the local disk returns, and of what it must never return.

#![expect(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::piece::{Identity, Piece};
use super::{Cache, CacheStatistics, CachedObject, Listed, tag};

const URL: &str = "s3://bucket/t/f";
const LIMIT: u64 = 64 << 20;

fn content(size: usize) -> Bytes {
    (0..size).map(|at| (at * 7 % 251) as u8).collect()
}

fn cache(directory: &Path) -> Arc<Cache> {
    Cache::open(directory.to_owned(), LIMIT, "store")
}

fn object(cache: &Arc<Cache>, e_tag: &str, size: u64) -> CachedObject {
    cache.object(URL.to_owned(), e_tag, size).unwrap()
}

fn listed(e_tag: &str, size: u64) -> Listed {
    Listed { size, tag: tag(e_tag) }
}

/// Returns all pieces with their sizes.
fn files(root: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else if Piece::parse(entry.file_name().to_str().unwrap()).is_some() {
            found.push((entry.path(), entry.metadata().unwrap().len()));
        }
    }
    found
}

/// Reads ranges of an object with these bytes. Returns the ranges that had to be fetched from the store.
fn read(object: &CachedObject, content: &Bytes, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut fetched = Vec::new();
    let at = |range: &Range<u64>| content.slice(range.start as usize..range.end as usize);
    let bytes = object.ranges(ranges, |missing| {
        fetched.clone_from(&missing);
        Ok::<_, ()>(missing.iter().map(at).collect())
    });
    let expected: Vec<Bytes> = ranges.iter().map(at).collect();
    assert!(bytes.unwrap() == expected);
    fetched
}

#[test]
fn the_next_process_reads_from_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(200_000);
    cache(directory.path()).add_whole(URL.to_owned(), "\"one\"", &bytes);
    let next = cache(directory.path());
    // Some stores put the tag in quotes, others do not.
    assert_eq!(next.whole(URL.to_owned(), listed("one", 200_000)), Some(bytes.clone()));
    let (object, end) = next.end(URL.to_owned(), listed("one", 200_000), 64 << 10).unwrap();
    assert!(end == bytes.slice(200_000 - (64 << 10)..));
    assert_eq!((object.e_tag(), object.size()), ("\"one\"", 200_000));
    assert!(read(&object, &bytes, &[0..10, 65_530..131_080, 0..200_000]).is_empty());
    let statistics = next.statistics();
    assert_eq!((statistics.hits, statistics.misses), (5, 0));
    assert_eq!(statistics.hit_bytes, 200_000 + (64 << 10) + 10 + 65_550 + 200_000);
    assert!(CacheStatistics::of_process().hits >= 5);
}

#[test]
fn a_different_tag_size_url_or_store_is_a_miss() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path());
    cache.add_whole(URL.to_owned(), "one", &content(1000));
    let whole = |cache: &Arc<Cache>, url: &str, listed| cache.whole(url.to_owned(), listed).is_some();
    assert!(whole(&cache, URL, listed("one", 1000)));
    assert!(!whole(&cache, URL, listed("two", 1000)));
    assert!(!whole(&cache, URL, listed("one", 1001)));
    assert!(!whole(&cache, "s3://bucket/t/g", listed("one", 1000)));
    let other = Cache::open(directory.path().to_owned(), LIMIT, "other endpoint");
    assert!(!whole(&other, URL, listed("one", 1000)));
    assert!(other.newest_end(URL.to_owned(), None, 10).is_none());
    assert!(cache.end(URL.to_owned(), listed("two", 1000), 10).is_none());
    // The pieces of replaced content are not kept.
    cache.add_whole(URL.to_owned(), "two", &content(500));
    assert_eq!(files(directory.path()).len(), 1);
    assert!(whole(&cache, URL, listed("two", 500)) && !whole(&cache, URL, listed("one", 1000)));
}

#[test]
fn ranges_are_assembled_and_only_missing_bytes_are_fetched() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path());
    let bytes = content(1 << 20);
    let object = object(&cache, "one", 1 << 20);
    assert_eq!(read(&object, &bytes, &[1000..2000, 5000..6000]), [1000..2000, 5000..6000]);
    assert_eq!(read(&object, &bytes, &[1500..5500]), [2000..5000]);
    assert!(read(&object, &bytes, &[1000..6000, 1001..5999, 5000..6000]).is_empty());
    // There is one request for a range, even if the range has two gaps.
    assert_eq!(read(&object, &bytes, &[0..10_000]), [0..10_000]);
    assert_eq!(
        read(&object, &bytes, &[5_000..500_000, 900_000..1 << 20]),
        [10_000..500_000, 900_000..1 << 20]
    );
    assert_eq!(read(&object, &bytes, &[0..1 << 20]), [500_000..900_000]);
    assert!(read(&object, &bytes, &[0..1 << 20, 63 << 10..65 << 10]).is_empty());
}

#[test]
fn a_failed_fetch_adds_nothing_to_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let object = object(&cache(directory.path()), "one", 1000);
    assert_eq!(object.ranges(&[0..10], |_| Err("failed")), Err("failed"));
    // A response that is too short is not added either.
    assert!(object.ranges(&[0..10], |_| Ok::<_, ()>(vec![content(9)])).is_ok());
    assert!(files(directory.path()).is_empty());
}

/// After a crash of the machine, a file may have its name but not its content.
#[test]
fn incomplete_pieces_are_not_returned() {
    type Damage = fn(&mut Vec<u8>);
    let bytes = content(300_000);
    let damage: [(&str, Damage); 9] = [
        ("empty", |file| file.clear()),
        ("cut in the head", |file| file.truncate(20)),
        ("cut in the hashes", |file| file.truncate(150)),
        ("cut in the content", |file| file.truncate(100_000)),
        ("cut by one", |file| file.truncate(file.len() - 1)),
        ("longer", |file| file.push(0)),
        ("zeros", |file| file.fill(0)),
        ("zeros at the end", |file| file[250_000..].fill(0)),
        ("a bit in the first block", |file| file[1000] ^= 1),
    ];
    for (what, damage) in damage {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        let object = object(&cache, "one", 300_000);
        assert_eq!(read(&object, &bytes, &[0..300_000]).len(), 1);
        let [(path, _)] = files(directory.path()).try_into().unwrap();
        let mut file = fs::read(&path).unwrap();
        damage(&mut file);
        fs::write(&path, file).unwrap();
        assert_eq!(cache.whole(URL.to_owned(), listed("one", 300_000)), None, "{what}");
        assert!(!path.exists(), "{what}");
        assert_eq!(read(&object, &bytes, &[0..300_000]), [0..300_000], "{what}");
        assert!(read(&object, &bytes, &[0..300_000]).is_empty(), "{what}");
    }
}

/// One byte of the file is changed, at any position.
#[test]
fn a_changed_byte_is_never_returned() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = content(100);
    let cache = cache(directory.path());
    cache.add_whole(URL.to_owned(), "one", &bytes);
    let [(path, _)] = files(directory.path()).try_into().unwrap();
    let right = fs::read(&path).unwrap();
    for at in 0..right.len() {
        let mut wrong = right.clone();
        wrong[at] = wrong[at].wrapping_add(1);
        fs::write(&path, &wrong).unwrap();
        assert_eq!(cache.whole(URL.to_owned(), listed("one", 100)), None, "byte {at}");
        assert!(cache.newest_end(URL.to_owned(), None, 100).is_none(), "byte {at}");
    }
}

/// The file of a piece has the name of another piece, as if files were copied by hand.
#[test]
fn a_piece_with_the_name_of_another_piece_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path());
    cache.add_whole(URL.to_owned(), "one", &content(100));
    let [(path, _)] = files(directory.path()).try_into().unwrap();
    cache.add_whole("s3://bucket/t/g".to_owned(), "one", &Bytes::from(vec![9; 100]));
    let other = files(directory.path()).into_iter().find(|(other, _)| *other != path).unwrap().0;
    fs::copy(&other, &path).unwrap();
    assert_eq!(cache.whole(URL.to_owned(), listed("one", 100)), None);
    let identity = Identity { store: "s".into(), url: URL.into(), e_tag: "two".into(), size: 100 };
    cache.add_whole(URL.to_owned(), "one", &content(100));
    fs::rename(&path, path.with_file_name(Piece::new(&identity, 0..100).name())).unwrap();
    assert_eq!(cache.whole(URL.to_owned(), listed("two", 100)), None);
}

fn set_used(path: &Path, seconds_ago: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds_ago);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn the_least_recently_used_pieces_are_evicted() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path().to_owned(), 1 << 20, "store");
    let url = |number: usize| format!("s3://bucket/t/{number}");
    let bytes = content(100_000);
    for number in 0..9 {
        cache.add_whole(url(number), "one", &bytes);
        let newest = files(directory.path())
            .into_iter()
            .max_by_key(|(path, _)| path.metadata().unwrap().modified().unwrap());
        set_used(&newest.unwrap().0, 1000 - number as u64);
    }
    assert_eq!(files(directory.path()).len(), 9);
    // This piece is used again, so it becomes the most recently used one.
    assert!(cache.whole(url(0), listed("one", 100_000)).is_some());
    cache.add_whole(url(9), "one", &bytes);
    cache.add_whole(url(10), "one", &bytes);
    let is_there = |number| cache.whole(url(number), listed("one", 100_000)).is_some();
    assert!(is_there(0) && is_there(10) && is_there(9));
    assert!(!is_there(1) && !is_there(2));
    assert!(files(directory.path()).iter().map(|(_, size)| size).sum::<u64>() <= 1 << 20);
    // The files of evicted pieces are deleted, and objects larger than the cache are not added.
    cache.add_whole(url(11), "one", &content(2 << 20));
    assert!(!is_there(11) && is_there(0));
}

/// The total size is missing or wrong, because a process died while it was adding a piece.
#[test]
fn the_total_size_is_counted_again_if_it_is_not_known() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path().to_owned(), 1 << 20, "store");
    let root = directory.path().join("deltalog-1");
    let add = |name: &str| cache.add_whole(name.to_owned(), "one", &content(10_000));
    add("s3://b/1");
    let used = || u64::from_le_bytes(fs::read(root.join("used")).unwrap().try_into().unwrap());
    let one = used();
    assert!(one >= 10_000 && one % 4096 == 0);
    for wrong in [Vec::new(), vec![1, 2, 3], vec![255; 8], vec![0; 9]] {
        fs::write(root.join("used"), wrong).unwrap();
        let before = files(directory.path()).len() as u64;
        add(&format!("s3://b/{}", before + 1));
        assert_eq!(files(directory.path()).len() as u64, before + 1);
        assert_eq!(fs::read(root.join("used")).unwrap()[..8], ((before + 1) * one).to_le_bytes());
        fs::write(root.join("used"), ((before + 1) * one).to_le_bytes()).unwrap();
    }
    // A file that is still being written is counted. If it is too old for that, it is deleted.
    let (young, old) = (root.join("new/young"), root.join("new/old"));
    fs::write(&young, [0; 5000]).unwrap();
    fs::write(&old, [0; 5000]).unwrap();
    set_used(&old, 4000);
    fs::write(root.join("used"), []).unwrap();
    add("s3://b/last");
    assert_eq!(used(), 6 * one + 3 * 4096);
    assert!(young.exists() && !old.exists());
}

/// Each thread has its own cache object, as a process would have: they only share the directory. The size limit holds
/// at all times.
#[test]
fn several_processes_add_and_evict_concurrently() {
    let directory = tempfile::tempdir().unwrap();
    let limit = 1 << 20;
    let is_done = AtomicBool::new(false);
    let path = directory.path();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_usize)
            .map(|writer| {
                scope.spawn(move || {
                    for round in 0..60_usize {
                        let cache = Cache::open(path.to_owned(), limit, "store");
                        let number = (round * 7 + writer) % 20;
                        let url = format!("s3://b/{number}");
                        let bytes = Bytes::from(vec![number as u8; 90_000]);
                        if let Some(found) = cache.whole(url.clone(), listed("one", 90_000)) {
                            assert!(found == bytes);
                        }
                        cache.add_whole(url, "one", &bytes);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let used = path.join("deltalog-1/used");
            while !is_done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                let Ok(used) = fs::File::open(&used) else { continue };
                // No piece is evicted and no space is reserved while the files are counted.
                used.lock().unwrap();
                let sum: u64 = files(path).iter().map(|(_, size)| size).sum();
                used.unlock().unwrap();
                assert!(sum <= limit, "{sum}");
            }
        });
        let ends: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_done.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.unwrap());
    });
    assert!(files(path).len() > 5);
    assert_eq!(fs::read_dir(path.join("deltalog-1/new")).unwrap().count(), 0);
}

/// If a process is stopped while it holds the lock, the other processes continue.
#[test]
fn a_process_does_not_wait_long_for_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path());
    cache.add_whole(URL.to_owned(), "one", &content(100));
    let held = fs::File::open(directory.path().join("deltalog-1/used")).unwrap();
    held.lock().unwrap();
    cache.add_whole("s3://bucket/t/g".to_owned(), "one", &content(100));
    assert_eq!(files(directory.path()).len(), 1);
    assert!(cache.whole(URL.to_owned(), listed("one", 100)).is_some());
    held.unlock().unwrap();
    cache.add_whole("s3://bucket/t/g".to_owned(), "one", &content(100));
    assert_eq!(files(directory.path()).len(), 2);
}

#[test]
fn reads_succeed_if_the_directory_cannot_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "not a directory").unwrap();
    let cache = Cache::open(file.join("below"), LIMIT, "store");
    cache.add_whole(URL.to_owned(), "one", &content(100));
    assert_eq!(cache.whole(URL.to_owned(), listed("one", 100)), None);
    assert!(cache.object(URL.to_owned(), "one", 100).is_none());
}

/// The directory is deleted while it is in use, or a file has its name.
#[test]
fn a_deleted_directory_is_created_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path());
    cache.add_whole(URL.to_owned(), "one", &content(100));
    fs::remove_dir_all(directory.path().join("deltalog-1")).unwrap();
    assert_eq!(cache.whole(URL.to_owned(), listed("one", 100)), None);
    cache.add_whole(URL.to_owned(), "one", &content(100));
    assert!(cache.whole(URL.to_owned(), listed("one", 100)).is_some());
    fs::remove_dir_all(directory.path().join("deltalog-1")).unwrap();
    fs::write(directory.path().join("deltalog-1"), "in the way").unwrap();
    cache.add_whole(URL.to_owned(), "one", &content(100));
    assert_eq!(cache.whole(URL.to_owned(), listed("one", 100)), None);
}

#[test]
#[cfg(unix)]
fn other_users_can_neither_read_nor_write_it() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("a/deltalog-1");
    let open = || Cache::open(directory.path().join("a"), LIMIT, "store");
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    open().add_whole(URL.to_owned(), "one", &content(100));
    assert_eq!(mode(&root), 0o700);
    let [(path, _)] = files(&root).try_into().unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(open().directory.is_some());
    assert_eq!(mode(&root), 0o700);
    // Only root can change the owner of a directory, so this part of the test needs root.
    if chown(&root, Some(12_345), None).is_ok() {
        assert!(open().directory.is_none());
    }
    fs::rename(&root, directory.path().join("elsewhere")).unwrap();
    symlink(directory.path().join("elsewhere"), &root).unwrap();
    assert!(open().directory.is_none());
}

#[cfg(feature = "s3")]
mod with_a_store {
    use deltalog_testkit::s3::S3Server;
    use parquet::file::reader::ChunkReader;

    use super::*;
    use crate::storage::Storage;

    struct Place {
        server: S3Server,
        directory: tempfile::TempDir,
    }

    fn place() -> Place {
        let server = S3Server::start();
        server.create_bucket("tables");
        Place { server, directory: tempfile::tempdir().unwrap() }
    }

    impl Place {
        /// Opens the store as a newly started process would.
        fn open(&self) -> Storage {
            let mut options = self.server.options();
            options.push(("cache_dir".into(), self.directory.path().to_str().unwrap().into()));
            let options = options.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
            Storage::open("s3://tables/t", options).unwrap()
        }

        fn requests(&self) -> usize {
            self.server.take_requests().len()
        }
    }

    #[test]
    fn a_file_from_a_listing_takes_no_request() {
        let place = place();
        place.server.put_object("tables", "t/f", content(300_000).to_vec());
        let listed = |storage: &Storage| storage.list_after("", "").unwrap().remove(0).listed();
        let first = place.open();
        let file = listed(&first);
        assert_eq!(first.read_listed("f", file).unwrap(), content(300_000));
        place.requests();
        let next = place.open();
        assert_eq!(next.read_listed("f", file).unwrap(), content(300_000));
        let reader = next.open_listed("f", file).unwrap();
        assert!(reader.get_bytes(10, 100_000).unwrap() == content(300_000).slice(10..100_010));
        assert_eq!(place.requests(), 0);
        assert_eq!(next.cache_statistics().map(|found| (found.hits, found.misses)), Some((3, 0)));
        // A read without a listing is not served from the cache. A writer reads its commit back in this way if the
        // store did not respond to the put.
        assert_eq!(next.read("f").unwrap(), content(300_000));
        assert_eq!(place.requests(), 1);
        // The file is replaced. The cache has the version of the first listing, and must request the version of the
        // second one.
        place.server.put_object("tables", "t/f", content(1000).to_vec());
        let replaced = listed(&next);
        assert_eq!(next.read_listed("f", file).unwrap(), content(300_000));
        assert_eq!(next.read("f").unwrap(), content(1000));
        assert_eq!(next.read_listed("f", replaced).unwrap(), content(1000));
        assert_eq!(place.open().read_listed("f", replaced).unwrap(), content(1000));
        assert_eq!(place.requests(), 1 + 1 + 1);
    }

    #[test]
    fn unlisted_files_are_requested_with_a_condition() {
        let place = place();
        place.server.put_object("tables", "t/f", content(300_000).to_vec());
        let read = |storage: &Storage, size: usize| {
            let file = storage.open_file("f").unwrap();
            assert!(file.get_bytes(0, size).unwrap() == content(size));
        };
        read(&place.open(), 300_000);
        assert_eq!(place.requests(), 2);
        let next = place.open();
        read(&next, 300_000);
        let requests = place.server.take_requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].status, Some(304), "{requests:?}");
        assert_eq!(next.cache_statistics().map(|found| (found.hits, found.misses)), Some((2, 0)));
        // The file was replaced.
        place.server.put_object("tables", "t/f", content(70_000).to_vec());
        read(&next, 70_000);
        read(&place.open(), 70_000);
        assert_eq!(place.requests(), 2 + 1);
        // The file was deleted.
        place.server.delete_object("tables", "t/f");
        let error = next.open_file("f").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::FileNotFound);
        assert_eq!(next.read_listed("g", None).unwrap_err().kind(), crate::ErrorKind::FileNotFound);
    }

    #[test]
    fn misspelled_options_are_suggested() {
        let error = Storage::open("s3://tables/t", [("cache_dirs", "x")]).unwrap_err();
        assert!(error.to_string().contains("spell it 'cache_dir'"), "{error}");
        let error = Storage::open("s3://tables/t", [("cache_dir", "x"), ("CACHE_SIZE", "big")]).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
        let error = Storage::open("/t", [("cache_dir", "x")]).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
    }
}
