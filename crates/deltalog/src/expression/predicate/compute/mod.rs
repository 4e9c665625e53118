//! Values of expressions: arithmetic, functions, casts and CASE, with Spark's types and results in ANSI mode.
//!
//! ```text
//! Expr ──Binder::value──> Node, typed; constants are computed ──Rows::value(rows)──> Arrow array
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `operation` | the operations; `names` has their names, `typing` the types of their arguments and results |
//! | `types` | the common types of values |
//! | `node` | the tree of a bound expression |
//! | `evaluate` | computes an expression for rows; `room` limits the memory of the values |
//! | `cast`, `number_cast`, `arithmetic`, `decimals`, `digits`, `math`, `random` | functions of numbers, and casts |
//! | `text`, `words`, `strings`, `regex`, `digest` | functions of strings and bytes |
//! | `time`, `time_text`, `interval`, `date_format` | functions of dates and times |
//! | `nested`, `nested_cast` | arrays, structs and maps |
//!
//! - A value that Spark refuses in ANSI mode (an overflow, a division by zero, a malformed number) is an error here.
//!   Spark without ANSI mode would return NULL or a wrapped number for it; no result here depends on that setting.
//! - An error counts only where the value is needed: CASE, `coalesce`, AND and OR evaluate a part only for rows that no
//!   earlier part has decided.
//! - Times without a time zone are in the session's zone.

mod arithmetic;
mod cast;
mod date_format;
mod decimals;
mod digest;
mod digits;
mod evaluate;
mod failure;
mod interval;
mod math;
mod names;
mod nested;
mod nested_cast;
mod node;
mod number_cast;
mod operation;
mod random;
mod regex;
mod room;
mod strings;
mod text;
mod time;
mod time_text;
mod types;
mod typing;
mod words;

#[cfg(test)]
mod tests;

pub(super) use cast::{cast, is_castable, is_complete};
pub(super) use date_format::DatePattern;
pub use digest::Digest;
pub(super) use evaluate::is_true;
pub(super) use failure::Failure;
pub use interval::Interval;
pub use math::Math;
pub(super) use names::{changes_of, is_function, names};
pub(super) use nested_cast::field_of_one;
pub(super) use node::{Link, Node};
pub(super) use operation::Form;
pub use operation::{Changes, DatePart, Moment, Operation, TimePart};
pub(super) use regex::JavaPattern;
pub use regex::RegexUse;
pub(super) use room::Memory;
pub(super) use types::{clocks, common, instants, is_number, is_time, plain, sql_name};
pub(super) use typing::{Argument, signature};
