//! Writes the rows of a caller's stream to data files.
//!
//! ```text
//! calling thread:  source ─► pieces of at most 65,536 rows ─┐   signals are checked between two pieces
//! its own thread:                                           └─► DataWriter
//! ```
//!
//! - The source is read on the calling thread, where Ctrl-C reaches it, and where it may use objects that belong to
//!   that thread, such as a database connection. While the source produces the next piece, another thread writes the
//!   previous one. There is no queue in between, so at most two pieces are in memory.
//! - The first [`ROWS_AT_ONCE`] rows are written on the calling thread. Small writes therefore need no other thread,
//!   and rows that the table refuses are usually refused before more rows are read. Later, one more piece may be read
//!   from the source after a piece that is refused.

use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::error::ArrowError;
use deltalog::engine::insert::Rows;
use deltalog::engine::interrupt;
use deltalog::engine::write::DataWriter;
use deltalog::{Error, ErrorKind, Result};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

use crate::logging::check_stop;

/// The maximum number of rows that are written at once. It limits the memory that conversions use, and determines how
/// often signals are checked.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Writes all `rows`. If that fails, the written files are deleted.
pub(crate) fn written(mut writer: DataWriter, rows: Rows) -> Result<DataWriter> {
    match write_all(&mut writer, rows) {
        Ok(()) => Ok(writer),
        Err(error) => {
            // The caller gets the first error, and not an error of the deletion. VACUUM removes files that are left.
            let _ = writer.abort();
            Err(error)
        }
    }
}

fn write_all(writer: &mut DataWriter, Rows { schema, mut pieces }: Rows) -> Result<()> {
    // An empty batch comes first, so that an unsuitable schema is refused before the source produces the first row.
    writer.write(&RecordBatch::new_empty(schema))?;
    let mut rows = 0;
    while rows < ROWS_AT_ONCE {
        let Some(piece) = pieces.next().transpose()? else { return Ok(()) };
        rows += piece.num_rows();
        writer.write(&piece)?;
    }
    write_aside(writer, pieces)
}

/// Writes `pieces`. This thread produces them, and another thread writes them. If the system cannot start another
/// thread, this thread also writes them.
fn write_aside(writer: &mut DataWriter, mut pieces: impl Iterator<Item = Result<RecordBatch>>) -> Result<()> {
    // Either of the two threads may do the writing.
    let writer = Mutex::new(writer);
    let write = |piece: &RecordBatch| writer.lock().unwrap_or_else(PoisonError::into_inner).write(piece);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel::<RecordBatch>();
        // The thread sends a message whenever it is ready for the next piece, and drops the sender when it ends.
        let (free, writer_is_free) = channel::<()>();
        let call = interrupt::inherited();
        let thread = std::thread::Builder::new().name("deltalog-write".to_owned());
        let write_received = move || {
            call.run(|| {
                // The calling thread may have stopped waiting, because it has no more pieces.
                let _ = free.send(());
                receiver.iter().try_for_each(|piece| {
                    write(&piece)?;
                    let _ = free.send(());
                    Ok(())
                })
            })
        };
        let Ok(writing) = thread.spawn_scoped(scope, write_received) else {
            return pieces.try_for_each(|piece| write(&piece?));
        };
        let mut read = Ok(());
        for piece in pieces {
            match piece {
                Ok(piece) => {
                    let is_free = interrupt::receive_from_own(&writer_is_free).is_ok();
                    if !is_free || sender.send(piece).is_err() {
                        // The writing thread has stopped, and its result contains the reason.
                        break;
                    }
                }
                Err(error) => {
                    read = Err(error);
                    break;
                }
            }
        }
        drop(sender);
        while interrupt::receive_from_own(&writer_is_free).is_ok() {}
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match read {
            // An interrupt takes precedence, so that code which catches errors and continues can still be stopped.
            Err(stop) if asks_to_stop(&stop) => Err(stop),
            // If both failed, the writer's error is returned, because the rows that it could not write came before the
            // point where the source failed.
            read => written.and(read),
        }
    })
}

/// Returns whether an error was caused by an exception such as `KeyboardInterrupt`, which is not meant to be caught.
fn asks_to_stop(error: &Error) -> bool {
    let exception = std::error::Error::source(error).and_then(|source| source.downcast_ref::<PyErr>());
    exception.is_some_and(|exception| Python::attach(|py| !exception.is_instance_of::<PyException>(py)))
}

/// Returns all rows of `reader`, in [`pieces`].
pub(crate) fn rows_of(reader: Box<dyn RecordBatchReader + Send>) -> Rows {
    Rows { schema: reader.schema(), pieces: Box::new(pieces(reader)) }
}

/// Returns the rows of `reader` in pieces, and checks for signals between two pieces.
pub(crate) fn pieces(reader: Box<dyn RecordBatchReader + Send>) -> impl Iterator<Item = Result<RecordBatch>> {
    let slices = |batch: RecordBatch| {
        let starts = (0..batch.num_rows()).step_by(ROWS_AT_ONCE);
        starts.map(move |start| Ok(batch.slice(start, ROWS_AT_ONCE.min(batch.num_rows() - start))))
    };
    let batches = reader.map(move |batch| batch.map(slices).map_err(stream_error));
    let pieces = batches.flat_map(|batch| match batch {
        Ok(slices) => Box::new(slices) as Box<dyn Iterator<Item = Result<RecordBatch>>>,
        Err(error) => Box::new(std::iter::once(Err(error))),
    });
    pieces.map(|piece: Result<RecordBatch>| {
        Python::attach(|py| py.check_signals()).and_then(|()| check_stop()).map_err(interrupted)?;
        piece
    })
}

fn interrupted(exception: PyErr) -> Error {
    Error::new(ErrorKind::Unavailable, "the write was interrupted; nothing was committed")
        .with_source(exception)
}

/// Converts an error of the caller's stream.
///
/// Arrow's C interface transports only text. If the source is a pyarrow reader, the text is a traceback, and its last
/// line is the exception. An interrupt must remain an interrupt, so that code which catches errors and continues can
/// still be stopped.
fn stream_error(error: ArrowError) -> Error {
    let error = match error {
        ArrowError::ExternalError(source) => match source.downcast::<PyErr>() {
            Ok(exception) => return raised(*exception),
            Err(source) => ArrowError::ExternalError(source),
        },
        error => error,
    };
    let text = error.to_string();
    let is_interrupt = text.trim_end().lines().last() == Some("KeyboardInterrupt");
    if is_interrupt {
        return interrupted(PyKeyboardInterrupt::new_err(()));
    }
    Error::invalid_argument(FAILED).with_source(error)
}

/// Converts an exception that the caller's code raised while it produced rows.
fn raised(exception: PyErr) -> Error {
    match Python::attach(|py| exception.is_instance_of::<PyException>(py)) {
        true => Error::invalid_argument(FAILED).with_source(exception),
        false => interrupted(exception),
    }
}

const FAILED: &str = "the data stream failed; nothing was committed";
