//! Converts panics of Rust code to `deltalog.errors.InternalError`.
//!
//! PyO3 catches the panic of any function or method that Python calls, and raises a `PanicException`, which `except
//! Exception` does not catch. This module replaces `PanicException.__new__` with a function that creates an
//! `InternalError` instead, so that calls do not have to catch panics. Code that Arrow's C interface calls must catch
//! them ([`caught`]), because a panic there would end the process.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Mutex, PoisonError};

use pyo3::panic::PanicException;
use pyo3::prelude::*;

const HINT: &str = "this is a defect of deltalog: please report it, with this message and its traceback";

/// The maximum number of panics that are remembered until their calls end.
const REMEMBERED: usize = 16;

/// The messages of the most recent panics, and the places in the code where they occurred.
static LAST: Mutex<VecDeque<(String, String)>> = Mutex::new(VecDeque::new());

/// Makes PyO3 raise an `InternalError` for a panic, and records where panics occur.
pub(crate) fn start(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        remember(panic);
        before(panic);
    }));
    #[cfg(feature = "as-tests")]
    module.setattr("_panic", wrap_pyfunction!(for_tests::_panic, module)?)?;
    module.py().get_type::<PanicException>().setattr("__new__", wrap_pyfunction!(internal_error, module)?)
}

/// Calls `work`, and converts a panic to an error with its message.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| format!("InternalError: {}; {HINT}", described(text(panic.as_ref()))))
}

/// Creates the `InternalError` for a panic, in place of PyO3's exception.
#[pyfunction]
#[pyo3(signature = (class, message = None))]
fn internal_error<'py>(
    class: &Bound<'py, PyAny>,
    message: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let ours = class.py().import("deltalog.errors")?.getattr("InternalError")?;
    match message {
        // While another exception is being handled, Python 3.11 calls the class again with the exception that it
        // created.
        Some(made) if made.is_instance(&ours)? => Ok(made),
        message => {
            let text = message.map_or_else(String::new, |message| message.to_string());
            let error = ours.call1((described(&text),))?;
            error.setattr("hint", HINT)?;
            Ok(error)
        }
    }
}

fn described(message: &str) -> String {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match last.iter().rev().find(|(of, _)| of == message) {
        Some((_, place)) => format!("deltalog has panicked at {place}: {message}"),
        None => format!("deltalog has panicked: {message}"),
    }
}

fn remember(panic: &PanicHookInfo<'_>) {
    let Some(location) = panic.location() else { return };
    // The paths of other crates' files begin with a directory of the machine that built the binary. It is left out.
    let file = location.file().rsplit_once("/registry/src/").map_or(location.file(), |(_, file)| file);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.len() >= REMEMBERED {
        last.pop_front();
    }
    last.push_back((text(panic.payload()).to_owned(), format!("{file}:{}", location.line())));
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("panic from Rust code")
}

#[cfg(feature = "as-tests")]
mod for_tests {
    use std::sync::Arc;

    use arrow::array::RecordBatch;
    use arrow::datatypes::Schema;
    use pyo3::prelude::*;

    use crate::call::call;
    use crate::stream::ArrowStream;

    /// Panics at the given place, for tests: in a call (`call`), in a thread of a call (`thread`), or when the second
    /// batch of a stream is requested (`stream`).
    #[pyfunction]
    #[expect(clippy::panic, reason = "the tests want a panic")]
    pub(super) fn _panic(py: Python<'_>, place: &str) -> PyResult<Option<ArrowStream>> {
        let panics = |what: &str| -> RecordBatch { panic!("a test of {what}") };
        match place {
            "stream" => {
                let schema = Arc::new(Schema::empty());
                let first = RecordBatch::new_empty(Arc::clone(&schema));
                let rest = std::iter::once_with(move || Ok(panics("streams")));
                ArrowStream::start(py, schema, std::iter::once(Ok(first)).chain(rest)).map(Some)
            }
            "thread" => call(py, || {
                let joined = std::thread::scope(|scope| scope.spawn(|| panics("threads")).join());
                joined.map(|_| Ok(None)).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }),
            _ => {
                panics("calls");
                Ok(None)
            }
        }
    }
}
