//! The rules of a table for each row that is written to it: expressions in the table's metadata.
//!
//! | file | what it does | PROTOCOL |
//! | --- | --- | --- |
//! | `check` | conditions that rows must meet | "CHECK Constraints", "Column Invariants" |
//! | `generated` | columns whose values follow from others | "Generated Columns" |
//! | `default_value` | values of columns that are left out | "Default Columns" |
//! | `identity` | columns whose values are counted up | "Identity Columns" |
//! | `lane` | the share of the values that one of several writers gives | "Identity Columns" |
//! | `length`, `length_type` | strings of the types `char` and `varchar`, at every depth | |
//! | `functions` | what expressions may call | |
//! | `collation` | strings that are not compared byte by byte | "Column Metadata" |
//! | `described` | which of them go with rows that have only some of the columns | |
//! | `rules` | finds all of them in a table's properties and schema | "Column Metadata" |
//! | `bind_schema` | the schema that they are bound to | |
//! | `bound`, `named_columns` | applies them to rows | |
//!
//! - An expression is bound once, before data is seen. One that cannot be evaluated here is refused then, in an error
//!   that names the part, and Spark as the way. Spark's own writer takes the text and evaluates it itself, if it calls
//!   only functions that `functions` lists.
//! - Expressions are evaluated as in Spark with ANSI mode. A row for which an expression has no value (an overflow, a
//!   division by zero) is refused.
//! - Times without a time zone, and dates of timestamps, use the given time zone.

mod bind_schema;
mod bound;
mod check;
mod collation;
mod default_value;
mod described;
mod functions;
mod generated;
mod identity;
mod lane;
mod length;
mod length_type;
mod named_columns;
pub(crate) use length::TYPE as LENGTH_TYPE;
mod rules;

#[cfg(test)]
mod tests;

pub use bound::Constraints;
pub use check::{Check, Violation};
pub(crate) use collation::ensure_bytes;
pub use default_value::DefaultValue;
pub use described::describe_rows;
#[doc(hidden)]
pub use functions::rule_functions;
pub use generated::Generated;
pub(crate) use identity::Identities;
pub use identity::IdentityValues;
pub(crate) use lane::{Counted, Lane};
pub(crate) use rules::CHECK;
pub use rules::{RowRules, RuleText};
