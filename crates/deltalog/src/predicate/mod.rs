//! Predicates: what a scan may leave out, and which rows it keeps.
//!
//! A [`Predicate`] is made from SQL text ([`parse`]) or with the builder ([`col`], [`lit`]), then bound to a
//! table's schema, and then used twice: [`prune`] says from statistics and partition values which files may
//! hold a matching row, [`filter_mask`] says for each row whether it matches.
//!
//! ```text
//! SQL text ──parse──┐
//!                   ├─> Predicate ──bind(schema)──> BoundPredicate ──prune(bounds of files)──> keep flags
//! col("a").gt(5) ───┘                                            └──filter_mask(batch)──────> rows that match
//! ```
//!
//! - Pruning only ever drops what cannot match: for every file and every row in it, if `filter_mask` is true,
//!   then `prune` keeps the file.
//! - A [`Function`] that keeps the order of its argument carries the argument's bounds over to its own
//!   values: `year(t) = 2024` prunes by `t`.
//! - What is not understood is [`Expr::Unknown`]: pruning takes it as "may be true, may be false";
//!   [`Predicate::bind`] and `filter_mask` refuse it.
//! - Values compare as in Spark: NaN is equal to itself and greater than every other number, -0.0 equals 0.0,
//!   strings and binary compare byte by byte, NULL compares to nothing.
//! - A literal never loses a digit on its way to the type of a column; a comparison that no value of that
//!   type can decide becomes a constant.

mod ast;
mod bind;
mod bound;
mod build;
mod display;
mod filter;
mod function;
mod like;
mod parse;
mod parse_function;
mod parse_value;
mod place;
mod prune;
mod token;
mod values;
mod zone;

pub use ast::{ColumnPath, CompareOp, Expr, Literal, Predicate};
pub use bound::{BoundColumn, BoundPredicate};
pub use build::{col, lit};
pub use filter::filter_mask;
pub use function::{CastType, Function, TruncUnit};
pub use parse::{ParseMode, parse};
pub use prune::{FileBounds, prune};

#[cfg(test)]
mod differential_tests;
#[cfg(test)]
mod text_tests;
