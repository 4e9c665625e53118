//! The async runtime on which requests to remote stores run. Each process has one.
//!
//! - It starts with the first request and never ends. A thread that calls this crate waits for its request and does not
//!   run the request itself. A call may therefore come from anywhere: from a Python thread, from a task of the caller's
//!   own async runtime, or from a callback that a request makes.
//! - A forked child process creates a runtime of its own (`runtime::per_process`).

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::mpsc::{Receiver, RecvError, sync_channel};

use futures::FutureExt;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::runtime::interrupt::{self, Interrupted};
use crate::runtime::per_process::PerProcess;

/// The number of threads that wait for responses. The callers decode the responses on their own threads.
const THREADS: usize = 2;

static RUNTIME: PerProcess<Runtime> = PerProcess::new();

/// A handle to a running future.
#[derive(Debug)]
pub(super) struct Running<T> {
    output: Receiver<std::thread::Result<T>>,
    future: AbortHandle,
}

impl<T> Running<T> {
    /// Waits until the future is complete, and returns its output. If it panics, the panic continues in the caller.
    ///
    /// # Errors
    /// An error if the process is ending. [`Interrupted`] if the call is interrupted; this aborts the future.
    pub(super) fn wait(self) -> io::Result<T> {
        match interrupt::receive(&self.output) {
            Ok(Ok(Ok(output))) => Ok(output),
            Ok(Ok(Err(panic))) => resume_unwind(panic),
            Ok(Err(RecvError)) => Err(io::Error::other("the threads for requests have ended")),
            Err(Interrupted) => {
                self.future.abort();
                Err(io::Error::other(Interrupted))
            }
        }
    }
}

/// Starts `future`.
///
/// # Errors
/// If the system cannot start threads.
pub(super) fn start<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<Running<T>> {
    let (done, output) = sync_channel(1);
    let task = current()?.spawn(async move {
        // Sending fails if the caller has failed and no longer waits. This is not an error.
        let _ = done.send(AssertUnwindSafe(future).catch_unwind().await);
    });
    Ok(Running { output, future: task.abort_handle() })
}

/// Returns the runtime, for clients that start tasks of their own.
///
/// # Errors
/// If the system cannot start threads.
#[cfg(feature = "hdfs")]
pub(super) fn handle() -> io::Result<tokio::runtime::Handle> {
    current().map(|runtime| runtime.handle().clone())
}

fn current() -> io::Result<&'static Runtime> {
    let start = || {
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("deltalog-io").enable_all().build()
    };
    RUNTIME.get_or_make(start, Runtime::shutdown_background)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
        start(future)?.wait()
    }

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

    /// The caller's own runtime has only one thread, and that thread is waiting.
    #[test]
    fn requests_may_be_made_inside_the_callers_runtime() {
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

    /// A credential provider that reads a table would do this.
    #[test]
    fn a_request_may_make_another_one() {
        let nested =
            run(async { tokio::task::spawn_blocking(|| run(async { 4 })).await.unwrap().unwrap() }).unwrap();
        assert_eq!(nested, 4);
    }

    #[test]
    #[should_panic(expected = "the store panics")]
    fn a_panic_continues_in_the_caller() {
        run(async { panic!("the store panics") }).unwrap()
    }
}
