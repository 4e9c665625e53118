//! Limits how many batches of a task may wait for the caller: a few batches of any size, or more if they are small.
//! The batches themselves are measured, because footers may understate their size.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The number of batches that may always wait, regardless of their size.
pub(super) const WAITING_BATCHES: usize = 2;
/// The maximum total size in bytes of the waiting batches, if there are more than [`WAITING_BATCHES`].
pub(super) const WAITING_BYTES: usize = 32 << 20;

/// The interval at which a waiting worker checks whether the caller has stopped.
const LOOK: Duration = Duration::from_millis(50);

/// The batches that wait for the caller.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    held: Mutex<Held>,
    has_changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    batches: usize,
    bytes: usize,
}

impl Waiting {
    /// Counts a batch of `bytes` bytes as waiting. Blocks until there is room for it, or the caller has stopped.
    pub(super) fn enter(&self, bytes: usize, is_stopped: &AtomicBool) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while held.batches >= WAITING_BATCHES
            && held.bytes.saturating_add(bytes) > WAITING_BYTES
            && !is_stopped.load(Ordering::Relaxed)
        {
            let waited = self.has_changed.wait_timeout(held, LOOK);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        held.batches += 1;
        held.bytes = held.bytes.saturating_add(bytes);
    }

    /// Stops counting a batch of `bytes` bytes, because the caller takes it.
    pub(super) fn leave(&self, bytes: usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.batches = held.batches.saturating_sub(1);
        held.bytes = held.bytes.saturating_sub(bytes);
        drop(held);
        self.has_changed.notify_all();
    }

    /// Returns the total size in bytes of the batches that wait.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn many_small_batches_may_wait_but_only_few_large_ones() {
        let (waiting, entered) = (Arc::new(Waiting::default()), Arc::new(AtomicUsize::new(0)));
        let is_stopped = Arc::new(AtomicBool::new(false));
        (0..1000).for_each(|_| waiting.enter(1000, &is_stopped));
        (0..1000).for_each(|_| waiting.leave(1000));
        let worker = std::thread::spawn({
            let (waiting, entered, is_stopped) =
                (Arc::clone(&waiting), Arc::clone(&entered), Arc::clone(&is_stopped));
            move || {
                for _ in 0..6 {
                    waiting.enter(WAITING_BYTES, &is_stopped);
                    entered.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        let wait_for = |count: usize| {
            while entered.load(Ordering::SeqCst) < count {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(3 * LOOK);
            assert_eq!(entered.load(Ordering::SeqCst), count);
        };
        wait_for(WAITING_BATCHES);
        waiting.leave(WAITING_BYTES);
        wait_for(WAITING_BATCHES + 1);
        is_stopped.store(true, Ordering::Relaxed);
        worker.join().unwrap();
    }
}
