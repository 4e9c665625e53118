//! Per-file statistics. They are decoded from JSON and from the structs of checkpoints to Arrow columns, used as bounds
//! for pruning, and computed from Parquet footers or from rows. (PROTOCOL, "Per-file Statistics".)
//!
//! - Only the requested leaf columns are decoded.
//! - A statistic that cannot be read is treated as unknown. This has no other effect: the file stays in the table, and
//!   is not pruned by this statistic.
//! - Statistics that this crate writes are always bounds, although the protocol allows truncation: a minimum is rounded
//!   down, and a maximum is rounded up or left out.

mod bounds;
mod by_path;
mod collect;
mod decode;
mod footer;
mod footer_nan;
mod json;
mod leaf;
mod origin;
mod parsed;
mod rows;
mod scanner;
mod tree;

pub use bounds::StatsBounds;
pub(crate) use bounds::{
    above_cut_texts, is_unrounded, widened_max_of_structs, widened_min_of_structs, without_nan,
};
pub use collect::{CollectOptions, IndexedColumns, collect_stats, leaf_columns};
pub(crate) use collect::{footer_columns, indexed};
pub(crate) use decode::decode_stats_with_origin;
pub use decode::{decode_stats, stats_fields};
pub(crate) use footer::whole_bounds;
pub(crate) use footer_nan::{KnownNans, NANS};
pub(crate) use json::{num_records, with_num_records, with_wide_bounds};
pub(crate) use origin::{MARK, OF_ROWS, is_own};
pub(crate) use parsed::lossless;
pub use parsed::normalize_stats;
pub(crate) use rows::{ColumnValues, is_bounded};
pub(crate) use tree::StatsTree;

#[cfg(test)]
mod round_trip_tests;
