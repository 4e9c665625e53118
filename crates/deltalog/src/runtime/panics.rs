//! Turns panics of decoders into errors. Damaged files may make a decoder panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

/// Calls `work`. If it panics, returns the message of the panic.
///
/// Values that `work` has captured must not be used after a panic.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| text(panic.as_ref()).to_owned())
}

/// Calls `work`. If it panics, returns the error that `error` makes from the message of the panic.
///
/// Values that `work` has captured must not be used after a panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>, error: impl FnOnce(&str) -> Error) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(error(text(panic.as_ref()))))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
