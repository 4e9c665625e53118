//! Limits the memory for data that is read from remote stores. All readers of a process, or of a store, share one
//! budget.
//!
//! - The budget counts the bytes that readers hold or have requested: ranges that are read ahead according to a plan.
//!   It does not count bytes that were already returned, footers, and reads without a plan.
//! - A reader that holds memory never waits for more, because other readers may be waiting for its memory. A reader
//!   that holds none waits briefly, because other readers usually finish soon. After that, it reads although the budget
//!   is used up, but in the smallest possible pieces ([`Budget::overdraw`]). This prevents deadlocks, even if the
//!   consumer of a scan pauses for hours, and each reader exceeds the budget by at most one such piece.
//! - A single read that is larger than the whole budget is allowed if no other memory is held.
//! - A forked child process starts with an unused budget, because it never releases memory that its parent held.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::runtime::clock;
use crate::runtime::per_process::PerProcess;

/// The size of a budget in bytes, unless an option sets it.
pub(super) const DEFAULT: u64 = 256 << 20;

/// How long a reader that holds no memory waits for other readers.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// A number of bytes that several readers share.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    account: PerProcess<Account>,
}

/// The bytes that the readers of one process hold.
#[derive(Debug, Default)]
struct Account {
    taken: Mutex<Taken>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    /// The maximum number of bytes that were held at the same time.
    most: u64,
}

/// A share of a budget. Dropping it returns the bytes to the budget.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    bytes: u64,
    process: u32,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, account: PerProcess::new() })
    }

    /// Takes `bytes` as soon as that many are free. Returns `None` if this takes longer than `patience`.
    pub(super) fn take(self: &Arc<Self>, bytes: u64, patience: Duration) -> Option<Share> {
        let deadline = clock::instant() + patience;
        let mut taken = self.taken();
        while taken.bytes > 0 && taken.bytes.saturating_add(bytes) > self.limit {
            let left = deadline.checked_duration_since(clock::instant()).filter(|left| !left.is_zero())?;
            taken =
                self.account().given_back.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(self.share(taken, bytes))
    }

    /// Takes `bytes` even if fewer than that are free.
    pub(super) fn overdraw(self: &Arc<Self>, bytes: u64) -> Share {
        self.share(self.taken(), bytes)
    }

    fn share(self: &Arc<Self>, mut taken: MutexGuard<'_, Taken>, bytes: u64) -> Share {
        taken.bytes = taken.bytes.saturating_add(bytes);
        taken.most = taken.most.max(taken.bytes);
        Share { budget: Arc::clone(self), bytes, process: std::process::id() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.account().taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self) -> &Account {
        self.account.get()
    }

    /// Returns the number of bytes that are held now, and the maximum that were held at the same time.
    #[cfg(test)]
    pub(super) fn now_and_most(&self) -> (u64, u64) {
        let taken = self.taken();
        (taken.bytes, taken.most)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // In a forked child process, this share belongs to the parent, which releases it.
        if self.process != std::process::id() {
            return;
        }
        let mut taken = self.budget.taken();
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
        drop(taken);
        self.budget.account().given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    #[test]
    fn dropping_a_share_returns_it_to_the_budget() {
        let budget = Budget::new(10);
        let first = budget.take(6, Duration::ZERO).unwrap();
        assert!(budget.take(5, Duration::ZERO).is_none());
        assert!(budget.take(5, SHORT).is_none());
        let second = budget.take(4, Duration::ZERO).unwrap();
        drop(first);
        assert!(budget.take(6, Duration::ZERO).is_some());
        drop(second);
        let much = budget.take(11, Duration::ZERO).expect("nothing else is held");
        let little = budget.overdraw(1);
        drop((much, little));
        assert_eq!(budget.now_and_most(), (0, 12));
    }

    #[test]
    fn waiting_readers_continue_when_others_return_their_shares() {
        let budget = Budget::new(10);
        let held = budget.take(10, Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..4).map(|_| scope.spawn(|| budget.take(5, Duration::from_secs(60)).is_some())).collect();
            std::thread::sleep(SHORT);
            drop(held);
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        });
        assert_eq!(budget.now_and_most(), (0, 10));
    }
}
