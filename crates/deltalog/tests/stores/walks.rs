//! A walk finds the same files as a listing, each of them once, with few requests.

use std::collections::BTreeMap;

use deltalog::{Error, ErrorKind, Storage};
use deltalog_testkit::random::Random;
use deltalog_testkit::s3::{Fault, Kind, Rule, S3Server, Settings, When, count};

use crate::contract::create;
use crate::places::Place;

on_every_store!(walks_enter_the_requested_directories);

fn is_open(path: &str) -> bool {
    !path.rsplit('/').next().unwrap().starts_with('_')
}

/// Returns the names and sizes of the files that a walk finds, and checks that no file occurs twice.
fn walked(storage: &Storage, directory: &str) -> BTreeMap<String, u64> {
    let mut files = BTreeMap::new();
    storage
        .walk(directory, &is_open, |batch| {
            assert!(!batch.is_empty());
            for file in batch {
                let before = files.insert(file.name.clone(), file.size);
                assert!(before.is_none(), "{} comes twice", file.name);
            }
            Ok(())
        })
        .unwrap();
    files
}

/// Returns the files that a walk should find, from a listing of everything.
fn listed(storage: &Storage, directory: &str) -> BTreeMap<String, u64> {
    let files = storage.list_after(directory, "").unwrap();
    let is_found = |name: &str| name.match_indices('/').all(|(end, _)| is_open(&name[..end]));
    files.into_iter().filter(|file| is_found(&file.name)).map(|file| (file.name, file.size)).collect()
}

fn walks_enter_the_requested_directories(place: &Place) {
    let storage = place.open("t");
    assert!(walked(&storage, "").is_empty());
    let paths =
        ["f", "_f", "a=1/f", "a=1/b=x y/f", "a=1/_temporary/f", "a=1-2/f", "a=1.f", "_delta_log/f", "z"];
    for path in paths {
        create(&storage, path, path.as_bytes());
    }
    let all = walked(&storage, "");
    assert_eq!(all.keys().collect::<Vec<_>>(), ["_f", "a=1-2/f", "a=1.f", "a=1/b=x y/f", "a=1/f", "f", "z"]);
    assert_eq!(all["a=1/b=x y/f"], 11);
    assert_eq!(walked(&storage, "a=1").keys().collect::<Vec<_>>(), ["b=x y/f", "f"]);
    assert!(walked(&storage, "a").is_empty());
    let failed = storage.walk("", &is_open, |_| Err(Error::invalid_argument("enough")));
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// A server with small pages, so that every listing has many of them.
fn with_pages_of(page_size: usize) -> (S3Server, Place) {
    let server = S3Server::start_with(Settings { page_size, ..Settings::default() });
    let place = Place::in_server(&server);
    (server, place)
}

fn bucket(place: &Place) -> &str {
    place.root.trim_start_matches("s3://")
}

/// The directory trees have random shapes: few or many directories, names that sort around a slash, and files next to
/// directories.
#[test]
fn walks_find_the_same_files_as_a_listing() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let page_size = 4 + random.below(9);
        let (server, place) = with_pages_of(usize::try_from(page_size).unwrap());
        let widths = [1, 3, 20, 60].map(|most| 1 + random.below(most));
        for _ in 0..random.below(300) {
            let levels = random.below(5);
            let mut path = String::from("t");
            for _ in 0..levels {
                let width = widths[usize::try_from(random.below(4)).unwrap()];
                let tail = ["", "-x", ".", "=", "0"][usize::try_from(random.below(5)).unwrap()];
                let start = ["a", "a", "a", "_"][usize::try_from(random.below(4)).unwrap()];
                path = format!("{path}/{start}{}{tail}", random.below(width));
            }
            server.put_object(bucket(&place), &format!("{path}/f{}", random.below(50)), path.clone());
        }
        server.put_object(bucket(&place), "t2/f", "beside the table");
        let storage = place.open("t");
        assert_eq!(walked(&storage, ""), listed(&storage, ""), "seed {seed}");
        assert_eq!(walked(&storage, "a0"), listed(&storage, "a0"), "seed {seed}");
    }
}

#[test]
fn a_small_table_is_one_request() {
    let (server, place) = with_pages_of(1_000);
    for number in 0..200 {
        server.put_object(bucket(&place), &format!("t/a={number}/f"), "x");
    }
    let storage = place.open("t");
    server.take_requests();
    assert_eq!(walked(&storage, "").len(), 200);
    assert_eq!(server.take_requests().len(), 1);
}

/// The number of requests grows neither with the number of partitions nor with the number of log files.
#[test]
fn many_partitions_are_read_as_ranges_at_the_same_time() {
    let (server, place) = with_pages_of(100);
    for number in 0..1_000 {
        server.put_object(bucket(&place), &format!("t/a={number:04}/f"), "x");
        server.put_object(bucket(&place), &format!("t/_delta_log/{number:020}.json"), "x");
    }
    let storage = place.open("t");
    server.take_requests();
    assert_eq!(walked(&storage, "").len(), 1_000);
    let requests = server.take_requests();
    assert_eq!(count(&requests, Kind::List), requests.len());
    // There is one request for the first page of all files, and 11 requests for pages of prefixes. Each page of
    // prefixes leads to at most four ranges of at most two pages each. The log is not listed.
    assert!(requests.len() <= 1 + 11 + 11 * 4 * 2, "{}", requests.len());
    // The latency is long, so that the comparison of times also holds on a busy machine.
    server.faults([Rule::new(Fault::LatencyMs(200)).on(Kind::List)]);
    let began = std::time::Instant::now();
    assert_eq!(walked(&storage, "").len(), 1_000);
    let one_by_one = std::time::Duration::from_millis(200) * u32::try_from(requests.len()).unwrap();
    assert!(began.elapsed() < one_by_one / 2, "{:?} of {one_by_one:?}", began.elapsed());
}

#[test]
fn a_failure_ends_the_walk() {
    let (server, place) = with_pages_of(10);
    for number in 0..200 {
        server.put_object(bucket(&place), &format!("t/a={number:03}/f"), "x");
    }
    let storage = place.open("t");
    let denied = Fault::Error(deltalog_testkit::s3::ErrorAnswer::new("AccessDenied"));
    server.faults([Rule::new(denied).on(Kind::List).when(deltalog_testkit::s3::When::Nth(30))]);
    let failed = storage.walk("", &is_open, |_| Ok(())).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::PermissionDenied, "{failed}");
}

/// If the response for a page of a listing ends too early, the page is requested again; the HTTP client does not do
/// this itself.
#[test]
fn a_page_that_is_cut_off_is_requested_again() {
    let (server, place) = with_pages_of(3);
    let storage = place.open("");
    (0..10).for_each(|number| create(&storage, &format!("t/{number}"), b"x"));
    let cut = |when| server.faults([Rule::new(Fault::CutBody).on(Kind::List).when(when)]);
    cut(When::Every(2));
    assert_eq!(walked(&storage, "t").len(), 10);
    assert_eq!(storage.list_after("t", "").unwrap().len(), 10);
    cut(When::Always);
    assert_eq!(storage.walk("t", &is_open, |_| Ok(())).unwrap_err().kind(), ErrorKind::Unavailable);
}

/// Links to directories are not followed, because the files behind a link may not belong to the table.
#[cfg(unix)]
#[test]
fn links_to_local_directories_are_not_followed() {
    let place = Place::local();
    let storage = place.open("t");
    create(&storage, "a/f", b"x");
    let root = std::path::Path::new(&place.root).join("t");
    std::os::unix::fs::symlink(&root, root.join("a/up")).unwrap();
    std::os::unix::fs::symlink(root.join("a/f"), root.join("link")).unwrap();
    assert_eq!(walked(&storage, "").keys().collect::<Vec<_>>(), ["a/f", "link"]);
}
