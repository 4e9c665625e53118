//! What a table demands of each row that is written to it, as expressions in the table's metadata.
//!
//! | file | what it does | PROTOCOL |
//! | --- | --- | --- |
//! | `check` | conditions that rows must meet | "CHECK Constraints", "Column Invariants" |
//! | `generated` | columns whose values follow from others | "Generated Columns" |
//! | `active` | finds both in a table's properties and schema | "Column Metadata" |
//!
//! - An expression is bound once, before data is seen. One that cannot be evaluated here is refused then, in an error
//!   that names the part, and Spark as the way.
//! - Expressions are evaluated as in Spark with ANSI mode. A row for which an expression has no value (an overflow, a
//!   division by zero) is refused.
//! - Times without a time zone, and dates of timestamps, are those of the given time zone.

mod active;
mod check;
mod generated;

#[cfg(test)]
mod tests;

pub use active::Constraints;
pub use check::{Check, Violation};
pub use generated::Generated;
