//! Tests of reading a file in a remote store, and of the requests that this takes.

use std::io::Read;

use deltalog_testkit::s3::{Kind, S3Server};
use parquet::file::reader::ChunkReader;

use super::ranges::END;
use super::{Backend, FileReader, Storage};

struct Place {
    server: S3Server,
    storage: Storage,
    content: Vec<u8>,
}

/// Returns an object of `size` bytes.
fn place(size: usize) -> Place {
    place_with(size, &[])
}

fn place_with(size: usize, more: &[(&str, &str)]) -> Place {
    let server = S3Server::start();
    server.create_bucket("tables");
    let content: Vec<u8> = (0..size).map(|at| (at * 7 % 251) as u8).collect();
    server.put_object("tables", "t/f", content.clone());
    let options = server.options();
    let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let options = options.chain(more.iter().copied());
    Place { storage: Storage::open("s3://tables/t", options).unwrap(), server, content }
}

impl Place {
    fn open(&self) -> FileReader {
        self.storage.open_file("f").unwrap()
    }

    /// Returns the ranges that were requested from the store.
    fn requested(&self) -> Vec<String> {
        let requests = self.server.take_requests();
        assert!(requests.iter().all(|request| request.kind == Kind::Get), "{requests:?}");
        let mut ranges: Vec<String> = requests.into_iter().filter_map(|request| request.range).collect();
        ranges.sort_by_key(|range| {
            range.trim_start_matches("bytes=").split('-').next().unwrap().parse::<u64>().ok()
        });
        ranges
    }

    /// Returns how many bytes readers hold now, and the maximum that they have held.
    fn held(&self) -> (u64, u64) {
        match &self.storage.backend {
            Backend::Remote(store) => store.reads().budget.now_and_most(),
            Backend::Local => (0, 0),
        }
    }

    fn check(&self, file: &FileReader, start: usize, length: usize) {
        assert!(file.get_bytes(start as u64, length).unwrap() == self.content[start..start + length]);
        let mut read = vec![0; length];
        file.get_read(start as u64).unwrap().read_exact(&mut read).unwrap();
        assert!(read == self.content[start..start + length]);
    }
}

#[test]
fn a_small_file_is_read_with_one_request() {
    for size in [1, 1000, END as usize] {
        let place = place(size);
        let file = place.open();
        assert_eq!(file.size(), size as u64);
        place.check(&file, 0, size);
        place.check(&file, size / 2, size - size / 2);
        assert!(file.get_bytes(1, size).is_err());
        assert_eq!(place.requested(), ["bytes=-65536"]);
    }
}

#[test]
fn empty_files_are_read_and_missing_files_are_errors() {
    let place = place(0);
    assert_eq!(place.open().size(), 0);
    let error = place.storage.open_file("g").unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::FileNotFound);
}

#[test]
fn the_ranges_of_a_planned_unit_are_requested_in_parallel() {
    let place = place(20 << 20);
    let mib = |from: u64, to: u64| from << 20..to << 20;
    // The first two ranges are close together; the last one is longer than a request.
    let first = vec![1000..2000, 3000..4000, mib(2, 3), mib(4, 15)];
    let file = place.open().planned(|| vec![first, vec![mib(16, 17)]]);
    place.check(&file, 3100, 500);
    assert_eq!(
        place.requested(),
        [
            "bytes=-65536",
            "bytes=1000-3999",
            "bytes=2097152-3145727",
            "bytes=4194304-12582911",
            "bytes=12582912-15728639"
        ]
    );
    // All bytes are returned, even if a read needs the bytes of two requests.
    place.check(&file, 1000, 3000);
    place.check(&file, 12_582_900, 1000);
    place.check(&file, 4 << 20, 11 << 20);
    assert!(place.requested().is_empty());
    place.check(&file, 16 << 20, 1 << 20);
    assert_eq!(place.requested(), ["bytes=16777216-17825791"]);
    // Ranges that are not in the plan can be read, too.
    place.check(&file, 18 << 20, 100);
    assert_eq!(place.requested().len(), 2);
}

#[test]
fn a_large_unit_is_read_ahead_range_by_range() {
    let place = place(80 << 20);
    let file = place.open().planned(|| vec![vec![0..20 << 20, 40 << 20..70 << 20]]);
    let read = |from: usize, to: usize| {
        let mut read = vec![0; to - from];
        file.get_read(from as u64).unwrap().read_exact(&mut read).unwrap();
        assert!(read == place.content[from..to]);
    };
    // Two columns are read side by side, a few bytes at a time.
    for at in (0..20 << 20).step_by(1 << 20) {
        read(at, at + 500_000);
        read((40 << 20) + at, (40 << 20) + at + 500_000);
    }
    let requested = place.requested();
    let asked: u64 = requested.iter().filter_map(|range| length(range)).sum();
    // No byte is requested twice.
    assert!(asked <= 50 << 20, "{requested:?}");
    assert!(requested.len() <= 10, "{requested:?}");
}

/// One column directly follows the other, as in most files.
#[test]
fn adjacent_columns_of_a_large_unit_are_read_side_by_side() {
    const COLUMN: usize = 12 << 20;
    let place = place(4 * COLUMN + (1 << 20));
    let mut columns: Vec<_> = (0..4).map(|at| at * COLUMN as u64..(at + 1) * COLUMN as u64).collect();
    // Two small columns are read in one request.
    let small = 4 * COLUMN as u64;
    columns.extend([small..small + 1000, small + 1000..small + 2000]);
    let file = place.open().planned(|| vec![columns]);
    let mut read = vec![0; 1 << 20];
    for at in (0..COLUMN).step_by(read.len()) {
        for column in 0..4 {
            let start = column * COLUMN + at;
            file.get_read(start as u64).unwrap().read_exact(&mut read).unwrap();
            assert!(read == place.content[start..start + read.len()]);
        }
        place.check(&file, small as usize + 1000 + at / 100_000, 10);
        place.check(&file, small as usize + at / 100_000, 10);
    }
    let requested = place.requested();
    let asked: u64 = requested.iter().filter_map(|range| length(range)).sum();
    // No byte is requested twice.
    assert!(asked <= small + 2000, "{asked}: {requested:?}");
    assert!(requested.len() <= 14, "{requested:?}");
}

/// Returns the number of bytes in a `Range` header like `bytes=1000-1999`.
fn length(range: &str) -> Option<u64> {
    let (from, to) = range.trim_start_matches("bytes=").split_once('-')?;
    Some(to.parse::<u64>().ok()? + 1 - from.parse::<u64>().ok()?)
}

/// If there are more readers than the budget has room for, they wait for each other.
#[test]
fn readers_share_a_budget() {
    const UNIT: usize = 1 << 20;
    let place = place_with(8 * UNIT, &[("read_memory", "3500000")]);
    std::thread::scope(|scope| {
        for reader in 0..8 {
            let place = &place;
            scope.spawn(move || {
                let start = (reader * UNIT) as u64;
                for _ in 0..5 {
                    // The end of the file was already read when it was opened.
                    let file = place.open().planned(|| vec![vec![start..start + UNIT as u64]]);
                    place.check(&file, reader * UNIT, UNIT);
                }
            });
        }
    });
    let (now, most) = place.held();
    assert_eq!(now, 0);
    assert!(most <= 3_500_000 && most > 1 << 20, "{most}");
}

/// A scan may hold memory for a long time because its consumer has stopped reading. Other scans then continue in small
/// pieces.
#[test]
fn readers_continue_when_the_budget_is_used_up() {
    const MIB: usize = 1 << 20;
    let place = place_with(4 * MIB, &[("read_memory", "1000000")]);
    let idle = place.open().planned(|| vec![vec![0..MIB as u64]]);
    place.check(&idle, 0, 10);
    assert_eq!(place.held().0, MIB as u64);
    // These two columns are read side by side.
    let columns = vec![vec![MIB as u64..2 * MIB as u64, 2 * MIB as u64..3 * MIB as u64]];
    let file = place.open().planned(|| columns);
    place.requested();
    let began = std::time::Instant::now();
    for at in (0..MIB).step_by(1 << 16) {
        place.check(&file, MIB + at, 1 << 16);
        place.check(&file, 2 * MIB + at, 1 << 16);
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "only the first read waits");
    let asked: u64 = place.requested().iter().filter_map(|range| length(range)).sum();
    assert_eq!(asked, 2 * MIB as u64, "no byte is requested twice");
    assert!(place.held().1 <= (MIB + 2 * (128 << 10)) as u64, "{:?}", place.held());
    drop(idle);
    // The memory is free again, so a unit is read with one request instead of in small pieces.
    let file = place.open().planned(|| vec![vec![3 * MIB as u64..3 * MIB as u64 + 500_000]]);
    place.requested();
    place.check(&file, 3 * MIB, 400_000);
    assert_eq!(place.requested().len(), 1);
}

#[test]
fn bytes_of_a_replaced_file_are_not_mixed_with_the_new_ones() {
    let place = place(1 << 20);
    let file = place.open();
    place.server.put_object("tables", "t/f", vec![0; 1 << 20]);
    assert!(file.get_bytes(0, 10).is_err());
    let error = file.failure().unwrap();
    assert_eq!(error.kind(), crate::ErrorKind::Unavailable);
    assert!(error.to_string().contains("was replaced while it was read"), "{error}");
    assert!(error.to_string().contains("file f"), "{error}");
}
