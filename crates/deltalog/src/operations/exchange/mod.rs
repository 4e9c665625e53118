//! Creates tables from Parquet files and from other tables.

pub(crate) mod clone;
pub(crate) mod convert;
