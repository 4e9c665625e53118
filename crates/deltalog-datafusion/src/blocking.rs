//! Runs blocking calls of deltalog's core for asynchronous tasks, which must not block.
//!
//! ```text
//!   task of a runtime ◄──(one answer, or a channel of 2 batches)── a plain thread, in the core
//! ```
//!
//! - No async runtime is needed: the calls run on plain threads, as everywhere in the core.
//! - A panic on such a thread becomes an error of the query.
//! - If the task is dropped, the thread stops when the core next checks for interrupts: between two batches, files or
//!   requests, even if no row of the scan matches.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use arrow::array::RecordBatch;
use datafusion_common::{DataFusionError, Result, internal_datafusion_err};
use deltalog::engine::interrupt;
use futures::SinkExt;
use futures::channel::{mpsc, oneshot};
use futures::executor::block_on;

/// The maximum number of batches that wait for the task.
const WAITING_BATCHES: usize = 2;

thread_local! {
    /// Returns whether the task for which this thread works has been dropped.
    static IS_ABANDONED: RefCell<Option<Box<dyn Fn() -> bool>>> = const { RefCell::new(None) };
}

fn is_abandoned() -> bool {
    IS_ABANDONED.with_borrow(|asked| asked.as_ref().is_some_and(|is_abandoned| is_abandoned()))
}

/// Calls `work`, and interrupts it when a check finds that `is_abandoned_now` returns true.
fn interruptible<T>(
    is_abandoned_now: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    IS_ABANDONED.set(Some(Box::new(is_abandoned_now)));
    let worked = catch_unwind(AssertUnwindSafe(|| interrupt::watched(Some(is_abandoned), work).0));
    IS_ABANDONED.set(None);
    worked.unwrap_or_else(|panic| {
        Err(internal_datafusion_err!("the thread of a table panicked: {}", text(&*panic)))
    })
}

fn text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn spawned(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name(format!("deltalog-{name}"));
    thread.spawn(work).map(drop).map_err(|error: io::Error| DataFusionError::IoError(error))
}

/// Calls `work` on its own thread, and returns its result. If the future is dropped, `work` is interrupted.
pub(crate) async fn call<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (answer, answered) = oneshot::channel();
    spawned(name, move || {
        let answer = Rc::new(answer);
        let asked = Rc::clone(&answer);
        let worked = interruptible(move || asked.is_canceled(), work);
        if let Ok(answer) = Rc::try_unwrap(answer) {
            // If the future was dropped, there is no receiver for the result.
            let _ = answer.send(worked);
        }
    })?;
    answered.await.map_err(|_| {
        internal_datafusion_err!("the thread that works on the table ended without returning a result")
    })?
}

/// Calls `read` on its own thread, and returns the batches that it yields.
pub(crate) fn stream<I>(
    name: &str,
    read: impl FnOnce() -> I + Send + 'static,
) -> Result<mpsc::Receiver<Result<RecordBatch>>>
where
    I: Iterator<Item = Result<RecordBatch>>,
{
    let (mut batches, received) = mpsc::channel(WAITING_BATCHES);
    spawned(name, move || {
        let asked = batches.clone();
        let mut sent = batches.clone();
        let worked = interruptible(
            move || asked.is_closed(),
            move || {
                for batch in read() {
                    let is_last = batch.is_err();
                    if block_on(sent.send(batch)).is_err() || is_last {
                        break;
                    }
                }
                Ok(())
            },
        );
        if let Err(error) = worked {
            // The receiver may have been dropped.
            let _ = block_on(batches.send(Err(error)));
        }
    })?;
    Ok(received)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use deltalog::{
        Environment, Error, ErrorKind, Operation, PendingWrite, SaveMode, Snapshot, Storage, StructType,
        TableScan, WriteRequest,
    };
    use futures::StreamExt;

    use super::*;
    use crate::error::external;

    fn batch() -> RecordBatch {
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1, 2])) as _)]).unwrap()
    }

    /// A scan is interrupted even if it never sends a row.
    #[test]
    fn an_abandoned_call_stops() {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let schema = StructType::from_arrow(&batch().schema()).unwrap();
        let request = WriteRequest::new(schema, SaveMode::Append);
        let write = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
        let mut writer = write.writer().unwrap();
        writer.write(&batch()).unwrap();
        write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
        let snapshot = Snapshot::open(&storage, None).unwrap();
        let endless = || -> Result<()> {
            loop {
                for batch in TableScan::new(&snapshot).read().map_err(external)? {
                    batch.map_err(external)?;
                }
            }
        };
        let error = interruptible(|| true, endless).unwrap_err();
        let DataFusionError::External(cause) = error else { panic!("{error}") };
        assert_eq!(cause.downcast::<Error>().unwrap().kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn a_dropped_stream_ends_its_thread() {
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let mut batches = stream("test", move || {
            let _ended = ended;
            std::iter::from_fn(move || {
                let _ = &_ended;
                Some(Ok(batch()))
            })
        })
        .unwrap();
        assert_eq!(block_on(batches.next()).unwrap().unwrap(), batch());
        drop(batches);
        // The sender was dropped together with the iterator.
        assert!(end.recv().is_err());
    }

    #[test]
    fn errors_and_panics_are_passed_on() {
        let failing =
            || [Ok(batch()), Err(DataFusionError::Execution("torn".to_owned())), Ok(batch())].into_iter();
        let received: Vec<_> = block_on(stream("test", failing).unwrap().collect());
        assert_eq!(received.len(), 2, "nothing follows an error");
        assert!(received[1].as_ref().unwrap_err().to_string().contains("torn"));
        let panicking = || std::iter::from_fn(|| -> Option<Result<RecordBatch>> { panic!("out of cheese") });
        let received: Vec<_> = block_on(stream("test", panicking).unwrap().collect());
        assert!(received[0].as_ref().unwrap_err().to_string().contains("out of cheese"));
        let called = block_on(call("test", || -> Result<()> { panic!("out of cheese") }));
        assert!(called.unwrap_err().to_string().contains("out of cheese"));
    }
}
