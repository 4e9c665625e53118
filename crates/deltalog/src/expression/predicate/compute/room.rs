//! Limits the memory for values while an expression is computed.
//!
//! - The values of all operands that are still needed may have at most [`expression_bytes`] bytes in total. Columns do
//!   not count, because they are in memory anyway.
//! - Functions that create strings ask for room before each string, so that no string becomes too long.
//! - Values that are too large for a whole batch may fit for fewer rows. The error is one for which
//!   [`is_too_large`](crate::runtime::row_bytes::is_too_large) is true.

use super::super::filter::Rows;
use super::operation::{Form, Operation};
use crate::error::{Error, Result};
use crate::expression::predicate::allowance::expression_bytes;
use crate::runtime::row_bytes::{too_large, weight};
use arrow::array::{Array, ArrayRef, StringBuilder};
use arrow::buffer::BooleanBuffer;
use std::cell::Cell;
use std::sync::Arc;

/// The number of bytes that the values of an expression take.
#[derive(Debug, Default)]
pub(in crate::expression::predicate) struct Memory {
    /// The bytes of operands.
    operands: Cell<usize>,
    /// The bytes of terms that are kept.
    kept: Cell<usize>,
}

impl Memory {
    fn left(&self) -> Result<usize> {
        Ok(expression_bytes()?.saturating_sub(self.operands.get()).saturating_sub(self.kept.get()))
    }

    /// Calls `compute` and counts its values instead of its operands.
    pub(super) fn counted(
        &self,
        function: &'static str,
        compute: impl FnOnce() -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        let before = self.operands.get();
        let values = compute()?;
        // The operands are still in memory at this point.
        let bytes = weight(&values, 0, values.len());
        self.ensure(function, bytes)?;
        self.operands.set(before + bytes);
        Ok(values)
    }

    /// Calls `compute`, whose result is small and no longer needs its operands.
    pub(in crate::expression::predicate) fn released<T>(
        &self,
        compute: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = self.operands.get();
        let result = compute()?;
        self.operands.set(before);
        Ok(result)
    }

    /// Counts the values of a term that are kept, perhaps in place of earlier ones.
    pub(in crate::expression::predicate) fn keep(&self, values: &ArrayRef, instead: Option<&ArrayRef>) {
        let bytes = |values: &ArrayRef| weight(values, 0, values.len());
        let others = self.kept.get().saturating_sub(instead.map_or(0, bytes));
        self.kept.set(others + bytes(values));
    }

    /// Refuses the values of a function if they have more bytes than are left.
    pub(super) fn ensure(&self, function: &'static str, bytes: usize) -> Result<()> {
        match bytes <= self.left()? {
            true => Ok(()),
            false => Err(refused(function, bytes)?),
        }
    }
}

impl Rows<'_> {
    /// Returns how much memory the strings of an operation may take.
    ///
    /// # Errors
    /// The errors of [`expression_bytes`].
    pub(super) fn room<'a>(&self, operation: Operation, active: &'a BooleanBuffer) -> Result<Room<'a>> {
        let left = Cell::new(self.memory.left()?);
        Ok(Room { function: operation.name(), active, left, made: Cell::new(0) })
    }
}

/// The allowed size of the strings that a function creates.
#[derive(Debug)]
pub(super) struct Room<'a> {
    function: &'static str,
    /// The rows that need a string.
    active: &'a BooleanBuffer,
    left: Cell<usize>,
    made: Cell<usize>,
}

impl Room<'_> {
    /// Refuses a string of this size if it is too large.
    ///
    /// # Errors
    /// InvalidArgument.
    pub(super) fn ensure(&self, bytes: usize) -> Result<()> {
        match bytes <= self.left.get() {
            true => Ok(()),
            false => Err(refused(self.function, bytes.saturating_add(self.made.get()))?),
        }
    }

    /// Collects the string of each active row. The others are NULL.
    ///
    /// # Errors
    /// The errors of `of`, and `InvalidArgument` if the strings are too long.
    pub(super) fn texts<T: AsRef<str>>(
        &self,
        mut of: impl FnMut(usize) -> Result<Option<T>>,
    ) -> Result<ArrayRef> {
        let mut texts = StringBuilder::with_capacity(self.active.len(), 0);
        for row in 0..self.active.len() {
            let text = if self.active.value(row) { of(row)? } else { None };
            if let Some(text) = &text {
                let bytes = text.as_ref().len();
                self.ensure(bytes)?;
                self.left.set(self.left.get() - bytes);
                self.made.set(self.made.get() + bytes);
            }
            texts.append_option(text);
        }
        Ok(Arc::new(texts.finish()))
    }
}

fn refused(function: &str, bytes: usize) -> Result<Error> {
    let allowed = expression_bytes()?;
    Ok(too_large(
        format!("the values of {function} have {bytes} bytes"),
        format!("the values of an expression may have at most {allowed} bytes at once"),
        "make them shorter, exclude such rows with a condition or CASE, or set DELTALOG_EXPRESSION_BYTES",
    ))
}

impl Operation {
    /// Returns the name or the symbol of the operation.
    pub(super) fn name(self) -> &'static str {
        match self.form() {
            Form::Infix(name, _) | Form::Prefix(name) | Form::Call(name) => name,
            Form::Case => "CASE",
            Form::TryCast => "TRY_CAST",
        }
    }
}
