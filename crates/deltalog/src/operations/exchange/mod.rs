//! Tables that are made of Parquet files or of other tables.

pub(crate) mod clone;
pub(crate) mod convert;
