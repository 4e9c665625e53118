//! Parallel work on the items of a slice.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread do all its work itself from now on, as if the machine had a single core. Its requests to a
/// store then have one order, which a simulation can repeat.
pub fn stay_alone() {
    IS_ALONE.set(true);
}

/// Returns the number of threads that can compute at the same time.
pub(crate) fn cores() -> usize {
    // The system reads several files to answer.
    static CORES: OnceLock<usize> = OnceLock::new();
    if IS_ALONE.get() {
        return 1;
    }
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Returns the number of threads for work that waits for answers rather than for a core: at least `count`.
pub(crate) fn waiting(count: usize) -> usize {
    if IS_ALONE.get() { 1 } else { cores().max(count) }
}

/// Returns the number of threads for work of which there is to be no more than `count` at the same time.
pub(crate) fn exactly(count: usize) -> usize {
    if IS_ALONE.get() { 1 } else { count }
}

/// Applies `work` to each item and returns the results in order, using at most `threads` threads including
/// the caller's, or fewer if the system has no more.
///
/// # Errors
/// The first error of `work`, in the order of the items. No item is started after an error.
pub(crate) fn each<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    if threads <= 1 || items.len() <= 1 || IS_ALONE.get() {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R, E>)>> = Mutex::new(Vec::with_capacity(items.len()));
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    // Items are started in order, so everything before an error was done.
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Gives the same results, or the same error, as sequential work.
        #[test]
        fn agrees_with_sequential_work(items in prop::collection::vec(0..50u8, 0..40), threads in 0..9usize) {
            let work = |item: &u8| if *item < 48 { Ok(u16::from(*item) + 1) } else { Err(*item) };
            prop_assert_eq!(each(&items, threads, work), items.iter().map(work).collect::<Result<Vec<_>, _>>());
        }
    }

    #[test]
    fn a_thread_that_stays_alone_starts_no_others() {
        let own = std::thread::spawn(|| {
            stay_alone();
            let threads = each(&[0; 20], 8, |_| Ok::<_, ()>(std::thread::current().id())).unwrap();
            threads.iter().all(|thread| *thread == std::thread::current().id()) && cores() == 1
        });
        assert!(own.join().unwrap());
    }

    #[test]
    fn at_most_the_requested_threads_are_used() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |_: &u8| -> Result<(), ()> {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(1));
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        each(&[0; 50], 3, work).unwrap();
        assert!((2..=3).contains(&most.into_inner()));
    }

    #[test]
    fn nothing_is_started_after_an_error() {
        let begun = AtomicUsize::new(0);
        let items: Vec<usize> = (0..10_000).collect();
        let work = |item: &usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            if *item == 10 { Err(*item) } else { Ok(()) }
        };
        assert_eq!(each(&items, 4, work), Err(10));
        assert!(begun.into_inner() < 10_000);
    }
}
