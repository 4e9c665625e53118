//! Runs work on several threads, which end when the work is done.

use std::cell::Cell;
use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::{JoinHandle, ScopedJoinHandle};

use crate::runtime::interrupt::{self, Inherited};

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread do all its work itself from now on, as if the machine had a single core. Its requests to a
/// store then always come in the same order, so that a simulation can repeat them.
pub fn stay_alone() {
    IS_ALONE.set(true);
}

/// Returns the number of threads that can compute at the same time.
pub(crate) fn cores() -> usize {
    // Determining the number of cores reads several system files, so it is done only once.
    static CORES: OnceLock<usize> = OnceLock::new();
    if IS_ALONE.get() {
        return 1;
    }
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Returns the number of threads for work that mostly waits for responses: the number of cores, but at least `count`.
pub(crate) fn waiting(count: usize) -> usize {
    if IS_ALONE.get() { 1 } else { cores().max(count) }
}

/// Returns the number of threads for work that should run on `count` threads, however many cores there are.
pub(crate) fn exactly(count: usize) -> usize {
    if IS_ALONE.get() { 1 } else { count }
}

/// Applies `work` to each item and returns the results in order. Uses at most `threads` threads, including the
/// caller's, or fewer if the system cannot start more.
///
/// # Errors
/// The error of the first item, in order, for which `work` fails. No item is started after an error.
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
    let call = interrupt::inherited();
    let (working, ended) = mpsc::channel::<Infallible>();
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            let (call, working, worker) = (&call, working.clone(), &worker);
            let worker = move || {
                call.run(worker);
                drop(working);
            };
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
        drop(working);
        wait_for_end(&ended);
    });
    // Items are started in order, so all items before the failed item have been processed.
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Waits until all senders have been dropped. Each thread drops its sender when it ends.
fn wait_for_end(ended: &mpsc::Receiver<Infallible>) {
    let Err(mpsc::RecvError) = interrupt::receive_from_own(ended);
}

/// Runs `produce` on this thread. The items that it passes on are consumed at the same time, in order, by calls of
/// `consume` on another thread. On a single core, or if the system cannot start a thread, both run on this one. At most
/// `ahead` items wait to be consumed.
///
/// # Errors
/// Returns the errors of `consume` and `produce`. After `consume` has failed, passing on another item returns its error
/// to `produce`. If `produce` fails, the items that it has already passed on are still consumed.
pub(crate) fn relay<T: Send, E: Send>(
    ahead: usize,
    produce: impl FnOnce(&mut dyn FnMut(T) -> Result<(), E>) -> Result<(), E>,
    mut consume: impl FnMut(T) -> Result<(), E> + Send,
) -> Result<(), E> {
    if cores() <= 1 {
        return produce(&mut consume);
    }
    let (sender, receiver) = mpsc::channel::<T>();
    // A message is sent for each consumed item. The sender is dropped after the last one.
    let (consumed, free) = mpsc::channel::<()>();
    let work = Work::new((consume, receiver, consumed));
    let call = interrupt::inherited();
    std::thread::scope(|scope| {
        let consumer = || match work.take() {
            Some((mut consume, receiver, consumed)) => call.run(|| {
                receiver.iter().try_for_each(|item| {
                    consume(item)?;
                    // If the producer has no more items, it may no longer receive messages.
                    let _ = consumed.send(());
                    Ok(())
                })
            }),
            None => Ok(()),
        };
        let mut consumer = match std::thread::Builder::new().spawn_scoped(scope, consumer) {
            Ok(thread) => Some(thread),
            Err(_) => return work.take().map_or(Ok(()), |(mut consume, ..)| produce(&mut consume)),
        };
        let mut waiting = 0;
        let end = |consumer: Option<ScopedJoinHandle<'_, Result<(), E>>>| {
            consumer.map_or(Ok(()), |thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        };
        let produced = produce(&mut |item| {
            waiting += 1;
            let has_room = waiting <= ahead || interrupt::receive_from_own(&free).is_ok();
            match has_room.then(|| sender.send(item)) {
                Some(Ok(())) => Ok(()),
                // The consumer has stopped because of an error.
                _ => end(consumer.take()),
            }
        });
        drop(sender);
        while interrupt::receive_from_own(&free).is_ok() {}
        end(consumer).and(produced)
    })
}

/// Work that a new thread takes, or the caller if the thread cannot be started.
struct Work<W>(Mutex<Option<W>>);

impl<W> Work<W> {
    fn new(work: W) -> Self {
        Self(Mutex::new(Some(work)))
    }

    fn take(&self) -> Option<W> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Work that runs on a separate thread. Dropping this waits until the work has ended.
pub(crate) struct Task<T>(Option<Running<T>>);

enum Running<T> {
    Done(T),
    On(JoinHandle<Option<T>>, mpsc::Receiver<Infallible>),
}

impl<T: Send + 'static> Task<T> {
    /// Starts `work`. On a single core, or if the system cannot start a thread, the work is done before this returns.
    pub(crate) fn begin(work: impl FnOnce() -> T + Send + 'static) -> Self {
        if cores() <= 1 {
            return Self(Some(Running::Done(work())));
        }
        let work = Arc::new(Work::new(work));
        let theirs = Arc::clone(&work);
        let (working, ended) = mpsc::channel::<Infallible>();
        let call: Inherited = interrupt::inherited();
        let run = move || {
            let _working = working;
            theirs.take().map(|work| call.run(work))
        };
        let thread = std::thread::Builder::new().spawn(run);
        Self(match thread {
            Ok(thread) => Some(Running::On(thread, ended)),
            Err(_) => work.take().map(|work| Running::Done(work())),
        })
    }

    /// Waits for the end of the work and returns its result. Returns `None` if the result was already taken.
    pub(crate) fn end(&mut self) -> Option<T> {
        self.0.take().and_then(|running| match running {
            Running::Done(result) => Some(result),
            Running::On(thread, ended) => {
                wait_for_end(&ended);
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            }
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Some(Running::On(thread, ended)) = self.0.take() {
            wait_for_end(&ended);
            // The result is not needed, and a thread that panicked has already reported the panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The results, or the error, are the same as in sequential work.
        #[test]
        fn agrees_with_sequential_work(items in prop::collection::vec(0..50u8, 0..40), threads in 0..9usize) {
            let work = |item: &u8| if *item < 48 { Ok(u16::from(*item) + 1) } else { Err(*item) };
            prop_assert_eq!(each(&items, threads, work), items.iter().map(work).collect::<Result<Vec<_>, _>>());
        }
    }

    #[test]
    fn a_thread_that_works_alone_starts_no_threads() {
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

    #[test]
    fn items_are_passed_on_in_order_until_an_error() {
        let relayed = |count: u32, fails_at: u32, ends_badly: bool| {
            let (mut seen, mut sent) = (Vec::new(), 0);
            let outcome = relay(
                2,
                |send| {
                    (0..count).try_for_each(|item| {
                        sent += 1;
                        send(item)
                    })?;
                    if ends_badly { Err(u32::MAX) } else { Ok(()) }
                },
                |item| {
                    seen.push(item);
                    if item == fails_at { Err(item) } else { Ok(()) }
                },
            );
            (outcome, seen, sent)
        };
        assert_eq!(relayed(100, 100, false), (Ok(()), (0..100).collect(), 100));
        assert_eq!(relayed(100, 100, true), (Err(u32::MAX), (0..100).collect(), 100));
        let (outcome, seen, sent) = relayed(10_000, 7, false);
        assert_eq!((outcome, seen), (Err(7), (0..=7).collect()));
        assert!(sent < 10_000);
        // The last item fails when all items have already been passed on.
        assert_eq!(relayed(3, 2, true).0, Err(2));
    }

    #[test]
    fn dropping_a_task_waits_for_its_end() {
        let ended = std::sync::Arc::new(AtomicUsize::new(0));
        let work = |ended: std::sync::Arc<AtomicUsize>| {
            move || {
                std::thread::sleep(std::time::Duration::from_millis(5));
                ended.fetch_add(1, Ordering::SeqCst)
            }
        };
        drop(Task::begin(work(ended.clone())));
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        let mut task = Task::begin(work(ended));
        assert_eq!((task.end(), task.end()), (Some(1), None));
    }
}
