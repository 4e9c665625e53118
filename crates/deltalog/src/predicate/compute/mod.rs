//! Values of expressions: arithmetic, functions, casts and CASE, with Spark's types and results in ANSI mode.
//!
//! ```text
//! Expr ──Binder::value──> Node, typed; constants are computed ──Rows::value(rows)──> Arrow array
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `operation` | names the operations; `typing` has the types of their arguments and results |
//! | `types` | the common types of values |
//! | `node` | the bound tree |
//! | `evaluate` | computes it for rows |
//! | `cast`, `arithmetic`, `decimals`, `digits`, `text`, `time`, `date_format` | the operations |
//!
//! - A value that Spark refuses in ANSI mode (an overflow, a division by zero, a malformed number) is an error here,
//!   also where Spark returns NULL or a wrapped number without ANSI mode. No result depends on that setting.
//! - An error counts only where the value is needed: CASE, `coalesce`, AND and OR evaluate a part only for the rows
//!   that the parts before it have not decided.
//! - Times without a time zone are in the session's zone.

mod arithmetic;
mod cast;
mod date_format;
mod decimals;
mod digits;
mod evaluate;
mod failure;
mod node;
mod operation;
mod text;
mod time;
mod types;
mod typing;

#[cfg(test)]
mod tests;

pub(super) use cast::{cast, is_castable, is_complete};
pub(super) use date_format::DatePattern;
pub(super) use evaluate::is_true;
pub(super) use failure::Failure;
pub(super) use node::Node;
pub(super) use operation::Form;
pub use operation::{DatePart, Operation, TimePart};
pub(super) use types::{common, is_number, plain, sql_name};
pub(super) use typing::{Argument, signature};
