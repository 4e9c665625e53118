//! Tables that are created from Parquet files or from other tables.

pub(crate) mod clone;
pub(crate) mod convert;
