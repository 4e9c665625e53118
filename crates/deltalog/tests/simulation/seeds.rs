//! Plays many seeds, and checks the promises for each.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::play::play;
use crate::tally::Tally;

/// The number of seeds that are played, unless `DELTALOG_SEEDS` is set.
const SEEDS: u64 = 1_000;

/// The number of seeds after which a line about the progress is printed.
const PROGRESS: u64 = 2_000;

/// The number of seeds in which nearly every effect should occur at least once. The rarest effects, such as a conflict
/// of a `cluster`, occur about five times in so many seeds.
const ENOUGH: u64 = 500;

/// The number of seeds in which every effect should occur at least once.
const ENOUGH_FOR_ALL: u64 = 5_000;

/// How many effects may be missing if fewer than [`ENOUGH_FOR_ALL`] seeds are played.
const MISSING: usize = 2;

/// Returns the number in the environment variable `name`.
pub fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Checks the promises for each seed.
#[test]
fn the_promises_hold_for_every_seed() {
    let (first, count) = match number("DELTALOG_SEED") {
        Some(seed) => (seed, 1),
        // By default, the path of the source tree determines the seeds, as in the property tests.
        None => (number("PROPTEST_RNG_SEED").unwrap_or_default(), number("DELTALOG_SEEDS").unwrap_or(SEEDS)),
    };
    let (start, next, versions) = (Instant::now(), AtomicU64::new(0), AtomicUsize::new(0));
    let tally = Mutex::new(Tally::default());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let seed = first.wrapping_add(index);
            let verdict = play(seed);
            versions.fetch_add(verdict.versions, Ordering::Relaxed);
            tally.lock().unwrap().add(&verdict);
            if !verdict.broken.is_empty() {
                next.store(count, Ordering::Relaxed);
                panic!(
                    "{}\nseed {seed} broke:\n{}\nrun it again with: DELTALOG_SEED={seed} \
                     cargo test -p deltalog --test simulation the_promises",
                    verdict.trace,
                    verdict.broken.join("\n"),
                );
            }
            if count > PROGRESS && index % PROGRESS == 0 {
                eprintln!("{index} of {count} seeds in {:.0?}", start.elapsed());
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(worker)));
    });
    let (versions, tally, took) = (versions.into_inner(), tally.into_inner().unwrap(), start.elapsed());
    let rate = count as f64 / took.as_secs_f64();
    eprintln!("{tally}\n{count} seeds with {versions} versions in {took:.1?}, {rate:.0} a second");
    assert!(versions as u64 > count, "the runs made too few commits");
    let gaps = if count < ENOUGH { Vec::new() } else { tally.gaps() };
    let most = if count < ENOUGH_FOR_ALL { MISSING } else { 0 };
    assert!(gaps.len() <= most, "{gaps:?}");
}
