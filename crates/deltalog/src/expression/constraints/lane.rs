//! Lanes divide the values of identity columns among writers in several processes, so that they can assign values
//! concurrently. (PROTOCOL, "Identity Columns".)
//!
//! ```text
//!   lane 0 of 3:   first               first + 3 * step     first + 6 * step   …
//!   lane 1 of 3:   first + step        first + 4 * step     …
//!   lane 2 of 3:   first + 2 * step    …
//! ```
//!
//! - No value is in two lanes of the same write.
//! - Every writer starts at the beginning of its lane, so only one writer per lane can be committed. A worker that
//!   runs twice assigns the same values twice, and the commit refuses its second result.
//! - If some lanes use more values than others, gaps remain between the values, which the protocol allows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// One of several lanes: the share of the values that one writer may assign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lane {
    number: u32,
    of: u32,
}

impl Lane {
    /// Returns lane `number`, counted from 0, of a write with `of` lanes.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if `number` is not less than `of`.
    pub(crate) fn new(number: u32, of: u32) -> Result<Self> {
        match number < of {
            true => Ok(Self { number, of }),
            false => Err(Error::invalid_argument(format!("there is no task {number} of {of}"))
                .with_hint("number the tasks of a write from 0")),
        }
    }

    /// Returns the number of this lane, counted from 0.
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of lanes in the write.
    pub(crate) fn of(self) -> u32 {
        self.of
    }

    /// Returns whether the lane's number is valid. It may be invalid if another process sent the lane as text.
    pub(super) fn exists(self) -> bool {
        self.number < self.of
    }
}

/// The values that one writer has assigned to identity columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counted {
    pub(crate) lane: Lane,
    /// For each column that the writer assigned values to, the first and the last value.
    pub(crate) values: BTreeMap<String, (i64, i64)>,
}
