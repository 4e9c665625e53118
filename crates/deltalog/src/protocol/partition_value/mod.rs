//! Partition values: strings in the log, typed columns in memory. (PROTOCOL, "Partition Value
//! Serialization".)
//!
//! - For every type, missing values, `null` and empty strings are null.
//! - A `timestamp` without a zone is read as UTC. The protocol interprets such values in the time zone of the
//!   system that wrote them, which the log does not record; UTC gives the same result everywhere. Written
//!   values always end in `Z`.
//! - A value that does not fit its type exactly makes the log corrupt: nothing is rounded or truncated.
//! - A `binary` value is the string's UTF-8, so bytes that are not UTF-8 cannot be written.
//! - `parse(to_log_string(v)) = v`, except that empty strings and bytes become null.

mod column;
mod parse;
mod write;

#[cfg(test)]
mod tests;

pub use column::PartitionColumnBuilder;
pub use write::to_log_string;
