//! Predicates, which decide what a scan can skip and which rows it returns, and other SQL expressions.
//!
//! A [`Predicate`] is parsed from SQL text ([`parse`]) or built in code ([`col`], [`lit`]), and then bound to a
//! table's schema. A bound predicate has two uses: [`prune`] selects, from statistics and partition values, the files
//! that may contain a matching row, and [`filter_mask`] selects the rows that match.
//!
//! ```text
//! SQL text ──parse──┐
//!                   ├─> Predicate ──bind(schema)──> BoundPredicate ──prune(bounds)───────> files to read
//! col("a").gt(5) ───┘                                            └──filter_mask(batch)──> rows that match
//! ```
//!
//! - Pruning only drops files that cannot match: if `filter_mask` is true for any row of a file, `prune`
//!   keeps the file.
//! - A [`Function`] that preserves the order of its argument turns the argument's bounds into bounds of its
//!   own values: `year(t) = 2024` prunes by `t`.
//! - All other values in conditions are computed exactly (`compute`), with the types and results of Spark in ANSI
//!   mode. They have no bounds. They can still prune files in which all columns that they read are constant, such as
//!   partition columns.
//! - An [`Expression`] is a bound value that is not part of a condition. It uses the same parser and binder.
//! - A part that cannot be parsed or bound becomes [`Expr::Unknown`]. Pruning treats it as "may be true, may be false";
//!   [`Predicate::bind`] and `filter_mask` refuse it.
//! - Values compare as in Spark: NaN equals itself and is greater than all other numbers, -0.0 equals 0.0,
//!   strings and binary compare byte by byte, and comparisons with NULL are NULL.
//! - A literal is never rounded to the type of a column. A comparison whose result is the same for all values of that
//!   type becomes a constant.

mod allowance;
mod ast;
mod bind;
mod bind_compare;
mod bind_times;
mod bind_value;
mod bound;
mod build;
mod compute;
mod display;
mod expression;
mod field_names;
mod filter;
mod function;
mod known;
mod like;
mod parse;
mod parse_condition;
mod parse_function;
mod parse_value;
mod place;
mod prune;
mod prune_constants;
mod saved;
mod scope;
mod size;
mod stack;
mod token;
mod values;
mod zone;

pub use allowance::expression_bytes;
pub use ast::{ColumnPath, CompareOp, Expr, Literal, Predicate};
pub(crate) use bind_value::literal_of;
pub use bound::{BoundColumn, BoundPredicate};
pub use build::{col, lit};
pub use compute::{Changes, DatePart, Digest, Interval, Math, Moment, Operation, RegexUse, TimePart};
pub use expression::Expression;
pub(crate) use expression::is_constant;
pub(crate) use field_names::FieldNames;
pub use filter::filter_mask;
pub(crate) use filter::leaf as column_at;
pub use function::{CastType, Function, TruncUnit};
pub use parse::{ParseMode, parse};
pub(crate) use parse_function::function_changes;
#[doc(hidden)]
pub use parse_function::function_names;
pub use prune::{FileBounds, prune};
pub(crate) use saved::SavedPredicate;
pub(crate) use scope::{Scope, ScopedValue};
pub(crate) use values::{normal, null_safe_equal};
pub(crate) use zone::Clock as ZoneClock;

#[cfg(test)]
mod differential_tests;
#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod text_tests;
