//! Partition values, which are strings in the log and typed columns in memory. (PROTOCOL, "Partition Value
//! Serialization".)
//!
//! - For every type, missing values, `null` and empty strings are null.
//! - A `timestamp` without a zone is read as UTC. The protocol interprets such a value in the time zone of the system
//!   that wrote it, but the log does not record this zone; UTC gives the same result everywhere. Values that this crate
//!   writes always end in `Z`.
//! - A value that does not fit its type exactly makes the log corrupt. No value is ever rounded or truncated.
//! - A `binary` value consists of the UTF-8 bytes of the string, so bytes that are not valid UTF-8 cannot be written.
//! - `parse(to_log_string(v)) = v`, except that empty strings and empty binary values become null.

mod column;
mod parse;
mod write;

#[cfg(test)]
mod tests;

pub use column::PartitionColumnBuilder;
pub use write::to_log_string;
