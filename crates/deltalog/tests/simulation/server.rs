//! Runs on an S3 server that fails: requests or their responses are lost, refused, slow or truncated. The client
//! retries them by its own rules.
//!
//! The processes run at the same time, so a seed determines what they do and how many requests fail, but not the order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deltalog_testkit::s3::S3Server;

use crate::bucket::Bucket;
use crate::place::Place;
use crate::play::play_at;
use crate::seeds::number;

/// The number of seeds that are played, unless `DELTALOG_SERVER_SEEDS` is set.
const SEEDS: u64 = 24;

/// How many runs play at the same time, each with its own server. Most of the time they are waiting to retry a
/// request.
const AT_ONCE: usize = 4;

#[test]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
fn the_promises_hold_on_a_server_that_fails() {
    let first = number("PROPTEST_RNG_SEED").unwrap_or_default();
    let count = number("DELTALOG_SERVER_SEEDS").unwrap_or(SEEDS);
    let (next, versions) = (AtomicU64::new(0), AtomicU64::new(0));
    let worker = || {
        let server = Arc::new(S3Server::start());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let seed = first.wrapping_add(index);
            let verdict = play_at(Place::Bucket(Bucket::create(&server, &format!("seed{seed}"))), seed);
            versions.fetch_add(verdict.versions as u64, Ordering::Relaxed);
            if !verdict.broken.is_empty() {
                next.store(count, Ordering::Relaxed);
                panic!("{}\nseed {seed} broke:\n{}", verdict.trace, verdict.broken.join("\n"));
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(worker))));
    let versions = versions.into_inner();
    eprintln!("{count} seeds with {versions} versions");
    assert!(versions > count, "the runs made too few commits");
}
