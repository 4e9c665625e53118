//! The runtime on which requests to remote stores run: one for the process.
//!
//! - It starts with the first request, and does not end. Threads of the process that call into this crate wait for a
//!   request without driving it themselves. So a call may come from anywhere: from a thread of Python, from a task of
//!   the caller's own runtime, or from a callback that a request makes.
//! - A forked child has none of its parent's threads. It makes a runtime of its own, and leaves that of its parent
//!   alone, in whatever state the fork has found it.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use futures::FutureExt;
use tokio::runtime::{Builder, Runtime};

/// The threads that wait for answers. What an answer contains is decoded on the threads of the caller.
const THREADS: usize = 2;

struct Owned {
    process: u32,
    runtime: Runtime,
    /// That of a child, if the process was forked.
    next: OnceLock<Box<Owned>>,
}

static FIRST: OnceLock<Box<Owned>> = OnceLock::new();

/// Runs `future` to its end, and returns its output. A panic in it is one of the caller.
///
/// # Errors
/// The system starts no threads, or the process ends.
pub(super) fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (done, output) = sync_channel(1);
    current()?.spawn(async move {
        // Nobody waits any more only if the caller has panicked.
        let _ = done.send(AssertUnwindSafe(future).catch_unwind().await);
    });
    match output.recv() {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(io::Error::other("the threads for requests have ended")),
    }
}

fn current() -> io::Result<&'static Runtime> {
    let process = std::process::id();
    let mut place = &FIRST;
    loop {
        match place.get() {
            Some(owned) if owned.process == process => return Ok(&owned.runtime),
            Some(parent) => place = &parent.next,
            None => {
                let runtime = Builder::new_multi_thread()
                    .worker_threads(THREADS)
                    .thread_name("deltalog-io")
                    .enable_all()
                    .build()?;
                let owned = Box::new(Owned { process, runtime, next: OnceLock::new() });
                if let Err(late) = place.set(owned) {
                    late.runtime.shutdown_background();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn requests_run_from_any_thread() {
        assert_eq!(run(async { 1 }).unwrap(), 1);
        let sum: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|number| scope.spawn(move || run(async move { number }).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(sum, 120);
    }

    /// The caller's own runtime has one thread, which waits.
    #[test]
    fn requests_run_below_a_runtime_of_the_caller() {
        let own = Builder::new_current_thread().enable_all().build().unwrap();
        let slept = own.block_on(async {
            run(async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                2
            })
            .unwrap()
        });
        assert_eq!(slept, 2);
        assert_eq!(futures::executor::block_on(async { run(async { 3 }).unwrap() }), 3);
    }

    /// As a provider of credentials does that reads a table.
    #[test]
    fn a_request_may_make_another_one() {
        let nested =
            run(async { tokio::task::spawn_blocking(|| run(async { 4 })).await.unwrap().unwrap() }).unwrap();
        assert_eq!(nested, 4);
    }

    #[test]
    #[should_panic(expected = "the store panics")]
    fn a_panic_is_that_of_the_caller() {
        run(async { panic!("the store panics") }).unwrap()
    }
}
