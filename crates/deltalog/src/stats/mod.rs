//! Per-file statistics (protocol, "Per-file Statistics"): from JSON and from the structs of checkpoints to
//! Arrow, from Arrow to bounds for pruning, and from a Parquet footer to JSON.
//!
//! - Only the leaf columns that are asked for are decoded.
//! - A statistic that cannot be read is lost, and nothing else: the file stays in the table and is never
//!   pruned for it.
//! - What is written is a bound even where the protocol lets it be cut off: a minimum is rounded down, a
//!   maximum up, or it is left out.

mod bounds;
mod collect;
mod decode;
mod footer;
mod json;
mod leaf;
mod parsed;
mod scanner;

pub use bounds::StatsBounds;
pub(crate) use bounds::widened_max;
pub use collect::{CollectOptions, IndexedColumns, collect_stats, leaf_columns};
pub use decode::{decode_stats, stats_fields};
pub(crate) use parsed::lossless;
pub use parsed::normalize_stats;

#[cfg(test)]
mod round_trip_tests;
