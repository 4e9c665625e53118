//! Limits the memory for values while an expression is evaluated.
//!
//! - The values of all operands that are still needed may take at most [`expression_bytes`] bytes in total. Columns
//!   do not count, because they are in memory anyway.
//! - Functions that create strings check the limit before they create each string, so that no string becomes too
//!   long.
//! - Values that are too large for a whole batch may fit if fewer rows are evaluated at once. Callers recognize the
//!   error for such values with [`is_too_large`](crate::runtime::row_bytes::is_too_large).

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
    /// The bytes of operands that are still needed.
    operands: Cell<usize>,
    /// The bytes of shared terms whose values are kept.
    kept: Cell<usize>,
}

impl Memory {
    fn left(&self) -> Result<usize> {
        Ok(expression_bytes()?.saturating_sub(self.operands.get()).saturating_sub(self.kept.get()))
    }

    /// Calls `compute`, then counts the memory of its result and stops counting the memory of its operands.
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

    /// Calls `compute`, then stops counting the memory of its operands. The result must be small.
    pub(in crate::expression::predicate) fn released<T>(
        &self,
        compute: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = self.operands.get();
        let result = compute()?;
        self.operands.set(before);
        Ok(result)
    }

    /// Counts the memory of a term's values, which will be kept. `instead` are the earlier values that they replace.
    pub(in crate::expression::predicate) fn keep(&self, values: &ArrayRef, instead: Option<&ArrayRef>) {
        let bytes = |values: &ArrayRef| weight(values, 0, values.len());
        let others = self.kept.get().saturating_sub(instead.map_or(0, bytes));
        self.kept.set(others + bytes(values));
    }

    /// Refuses the values of a function if they need more bytes than the limit still allows.
    pub(super) fn ensure(&self, function: &'static str, bytes: usize) -> Result<()> {
        match bytes <= self.left()? {
            true => Ok(()),
            false => Err(refused(function, bytes)?),
        }
    }
}

impl Rows<'_> {
    /// Returns the amount of memory that the strings of an operation may take.
    ///
    /// # Errors
    /// The errors of [`expression_bytes`].
    pub(super) fn room<'a>(&self, operation: Operation, active: &'a BooleanBuffer) -> Result<Room<'a>> {
        let left = Cell::new(self.memory.left()?);
        Ok(Room { function: operation.name(), active, left, made: Cell::new(0) })
    }
}

/// The memory that the strings of a function may still take.
#[derive(Debug)]
pub(super) struct Room<'a> {
    function: &'static str,
    /// The rows that need a string.
    active: &'a BooleanBuffer,
    left: Cell<usize>,
    made: Cell<usize>,
}

impl Room<'_> {
    /// Refuses further strings with a total of `bytes` bytes if they exceed the limit.
    ///
    /// # Errors
    /// Returns InvalidArgument if they exceed the limit.
    pub(super) fn ensure(&self, bytes: usize) -> Result<()> {
        match bytes <= self.left.get() {
            true => Ok(()),
            false => Err(refused(self.function, bytes.saturating_add(self.made.get()))?),
        }
    }

    /// Collects one string for each active row. All other rows are NULL.
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
