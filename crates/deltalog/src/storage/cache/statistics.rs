//! Counts how often caches on the local disk were asked for data, and how often they had it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::runtime::per_process::PerProcess;

/// How often files, or ranges of files, were found in a cache on the local disk, and how often they were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStatistics {
    /// The number of requests that the cache has answered.
    pub hits: u64,
    /// The number of requests that the store had to answer.
    pub misses: u64,
    /// The number of bytes that were read from the cache.
    pub hit_bytes: u64,
    /// The number of bytes that were read from the store.
    pub miss_bytes: u64,
}

#[derive(Debug, Default)]
struct Numbers {
    hits: AtomicU64,
    misses: AtomicU64,
    hit_bytes: AtomicU64,
    miss_bytes: AtomicU64,
}

impl Numbers {
    fn read(&self) -> CacheStatistics {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        CacheStatistics {
            hits: of(&self.hits),
            misses: of(&self.misses),
            hit_bytes: of(&self.hit_bytes),
            miss_bytes: of(&self.miss_bytes),
        }
    }
}

/// The counts of all caches of a process. A forked child process starts at zero.
static TOTALS: PerProcess<Numbers> = PerProcess::new();

impl CacheStatistics {
    /// Returns the counts of all caches of this process.
    pub fn of_process() -> Self {
        TOTALS.get().read()
    }
}

/// The counts of one cache. They are also included in the counts of the process.
#[derive(Debug, Default)]
pub(super) struct Counts(Numbers);

impl Counts {
    pub(super) fn hit(&self, bytes: usize) {
        for numbers in [&self.0, TOTALS.get()] {
            numbers.hits.fetch_add(1, Ordering::Relaxed);
            numbers.hit_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn miss(&self, bytes: usize) {
        for numbers in [&self.0, TOTALS.get()] {
            numbers.misses.fetch_add(1, Ordering::Relaxed);
            numbers.miss_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> CacheStatistics {
        self.0.read()
    }
}
