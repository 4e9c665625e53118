//! The settings that determine what goes wrong in a run, and how often.

use std::time::Duration;

use crate::random::Random;
use crate::store::{Fault, Op};

/// The maximum time in milliseconds between a request and its effect.
pub(super) const MOST_LATE_MS: u64 = 30_000;

/// The settings that determine what goes wrong in a run, and how often.
#[derive(Debug, Clone)]
pub struct Profile {
    /// How many of 1,000 requests fail.
    pub faults: u64,
    /// How many of 1,000 faults are followed by more faults of the same process, as if a connection were down.
    pub bursts: u64,
    /// How many of 1,000 requests crash their process.
    pub crashes: u64,
    /// How many of 1,000 requests and pauses pass the turn to another process.
    pub switches: u64,
    /// For how long listings may leave out a new file, in milliseconds. If it is 0, they may only leave out files
    /// that are created while they run, as listings of a local directory may.
    pub lag_ms: i64,
    /// Whether processes run concurrently, in real time, and use another store. In this case, the simulation itself
    /// causes none of the above, a pause ends after [`LONGEST_PAUSE`], and two runs with the same seed differ.
    pub is_real: bool,
}

/// The maximum length of a pause of a process that runs in real time.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(50);

impl Profile {
    /// Returns a profile in which nothing goes wrong.
    pub fn calm() -> Self {
        Self { faults: 0, bursts: 0, crashes: 0, switches: 500, lag_ms: 0, is_real: false }
    }

    /// Returns a profile with which processes run in real time. Of 1,000 requests to their store, `faults` fail.
    pub fn real(faults: u64) -> Self {
        Self { faults, is_real: true, ..Self::calm() }
    }

    /// Returns a random profile.
    pub fn draw(random: &mut Random) -> Self {
        Self {
            faults: *random.pick(&[0, 10, 30, 80, 150]),
            bursts: *random.pick(&[0, 100, 300]),
            crashes: *random.pick(&[0, 0, 4, 12]),
            switches: *random.pick(&[100, 300, 600, 1000]),
            lag_ms: *random.pick(&[0, 0, 0, 5_000]),
            is_real: false,
        }
    }

    /// Returns a random fault for a request of kind `op`.
    pub(super) fn fault(&self, op: Op, random: &mut Random) -> Fault {
        let may_be_late = matches!(op, Op::Put | Op::Create | Op::Delete);
        if may_be_late && random.chance(200) {
            return Fault::Late(1 + random.below(MOST_LATE_MS) as i64);
        }
        *random.pick(Fault::of(op))
    }
}
