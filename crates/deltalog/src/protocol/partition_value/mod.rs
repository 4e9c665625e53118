//! Partition values: strings in the log, typed columns in memory. (PROTOCOL, "Partition Value
//! Serialization".)
//!
//! - Missing, `null` and the empty string are null, for every type.
//! - A `timestamp` without a zone is read as UTC. The protocol leaves such values to the time zone of the
//!   system that wrote them, which the log does not record; UTC makes the result the same everywhere. Written
//!   values always carry `Z`.
//! - A value that does not fit its type exactly is a corrupt log: nothing is rounded or truncated.
//! - `binary` is the UTF-8 of the string, so bytes that are not UTF-8 cannot be written.
//! - `parse(to_log_string(v)) = v`, except that empty strings and bytes become null.

mod column;
mod parse;
mod write;

#[cfg(test)]
mod tests;

pub use column::PartitionColumnBuilder;
pub use write::to_log_string;
