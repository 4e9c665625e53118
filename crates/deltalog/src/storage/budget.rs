//! Limits the memory for what is read from remote stores, with one budget for all readers of a process or of a store.
//!
//! - The budget counts bytes that readers hold and bytes in flight for them: ranges that a plan has read ahead. It does
//!   not count bytes that were returned, footers, and reads without a plan.
//! - A reader that holds memory never waits for more, because another reader may be waiting in the same way. A reader
//!   that holds nothing waits briefly, because other readers usually finish soon. After that it reads without a share
//!   of the budget, but in the smallest possible pieces ([`Budget::overdraw`]). This prevents deadlocks, even if the
//!   consumer of a scan pauses for hours, and each reader exceeds the budget by at most one such piece.
//! - A read that is larger than the whole budget is allowed while nothing else is held.
//! - A forked child begins with an unused budget: it never releases memory that its parent held.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::runtime::clock;
use crate::runtime::per_process::PerProcess;

/// The size of a budget in bytes, if no option sets it.
pub(super) const DEFAULT: u64 = 256 << 20;

/// How long a reader that holds nothing waits for others.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// A number of bytes that readers share.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    account: PerProcess<Account>,
}

/// The bytes that the readers of one process have taken.
#[derive(Debug, Default)]
struct Account {
    taken: Mutex<Taken>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    /// The most that was taken at the same time.
    most: u64,
}

/// A part of a budget. Dropping it releases the part.
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

    /// Takes `bytes` as soon as enough is free. Returns `None` if that takes longer than `patience`.
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

    /// Takes `bytes` even if fewer are free.
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

    /// Returns the bytes that are taken, and the most that were at the same time.
    #[cfg(test)]
    pub(super) fn now_and_most(&self) -> (u64, u64) {
        let taken = self.taken();
        (taken.bytes, taken.most)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // In a forked process, this share belongs to the parent, which releases it.
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
    fn what_is_taken_is_given_back() {
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
    fn who_waits_goes_on_when_others_give_back() {
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
