//! Records which edges of the control flow have run, if the code was compiled with coverage counters.
//!
//! - With the options in `scripts/coverage_rustc.sh`, which work with a stable compiler, LLVM gives each edge a
//!   counter of eight bits, and calls [`__sanitizer_cov_8bit_counters_init`] with all counters before `main`.
//! - Without these options there are no counters, and no run counts as new.
#![allow(unsafe_code, reason = "counters that compiled code counts")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

static COUNTERS: OnceLock<&'static [AtomicU8]> = OnceLock::new();

/// Receives the counters of the program. It is called for each object file that has counters, and always receives the
/// counters of the whole program.
///
/// # Safety
/// `start` and `end` must be the beginning and the end of the counters, which must not move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *const u8, end: *const u8) {
    COUNTERS.get_or_init(|| {
        let length = (end as usize).saturating_sub(start as usize);
        // SAFETY: the caller guarantees that the counters are at this address. Only single bytes change.
        unsafe { std::slice::from_raw_parts(start.cast(), length) }
    });
}

/// The edges that earlier runs have taken, with a rough count for each.
#[derive(Debug, Default)]
pub struct Coverage(Vec<u8>);

impl Coverage {
    /// Returns whether the code was compiled with counters.
    pub fn is_counted() -> bool {
        COUNTERS.get().is_some_and(|counters| !counters.is_empty())
    }

    /// Begins a run by resetting all counters.
    pub fn begin() {
        for word in words() {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Ends the run that [`Self::begin`] has begun. Returns whether the run is new: whether it took an edge that no
    /// earlier run has taken, or took an edge a new number of times. Numbers of the same class (1, 2, 3, 4 to 7, 8 to
    /// 15, 16 to 31, 32 to 127, or more) count as equal.
    pub fn add(&mut self) -> bool {
        let mut is_new = false;
        self.0.resize(words().len() * 8, 0);
        for (seen, word) in self.0.chunks_exact_mut(8).zip(words()) {
            let counts = word.load(Ordering::Relaxed);
            if counts == 0 {
                continue;
            }
            for (seen, count) in seen.iter_mut().zip(counts.to_ne_bytes()) {
                let class = class_of(count);
                is_new |= class & !*seen != 0;
                *seen |= class;
            }
        }
        is_new
    }

    /// Returns the number of edges that were taken.
    pub fn edges(&self) -> usize {
        self.0.iter().filter(|seen| **seen != 0).count()
    }
}

/// Returns the counters, eight at a time. A few counters at both ends may be left out.
fn words() -> &'static [AtomicU64] {
    let counters = COUNTERS.get().copied().unwrap_or_default();
    // SAFETY: an `AtomicU64` has the size of eight counters, and every combination of bits is a valid value.
    unsafe { counters.align_to::<AtomicU64>().1 }
}

/// Returns the bit for a class of counts: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, or more.
fn class_of(count: u8) -> u8 {
    match count {
        0 => 0,
        1..=3 => 1 << (count - 1),
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128.. => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test program is compiled without counters, so the test provides its own.
    #[test]
    fn a_run_is_new_by_its_edges_and_by_how_often_it_took_them() {
        static COUNTS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
        let run = |counts: [u8; 8]| {
            Coverage::begin();
            COUNTS[1].store(u64::from_ne_bytes(counts), Ordering::Relaxed);
        };
        assert!(!Coverage::is_counted());
        let range = COUNTS.as_ptr_range();
        // SAFETY: the counters are static.
        unsafe { __sanitizer_cov_8bit_counters_init(range.start.cast(), range.end.cast()) };
        assert!(Coverage::is_counted());
        let mut coverage = Coverage::default();
        run([0; 8]);
        assert!(!coverage.add());
        run([1, 0, 0, 0, 0, 0, 0, 9]);
        assert!(coverage.add());
        run([1, 0, 0, 0, 0, 0, 0, 10]);
        assert!(!coverage.add(), "about as often");
        run([2, 0, 0, 0, 0, 0, 0, 0]);
        assert!(coverage.add(), "more often");
        run([0, 0, 0, 1, 0, 0, 0, 0]);
        assert!(coverage.add());
        assert_eq!(coverage.edges(), 3);
    }
}
