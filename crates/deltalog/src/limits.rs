//! The limits of what tables may contain. What goes beyond them is an error, so that nobody's
//! table ends the process.

/// The levels of structs, arrays and maps in a table's schema.
pub(crate) const SCHEMA_LEVELS: usize = 100;

/// The levels of groups in the schema of a Parquet file. An array takes two of them, and a checkpoint adds a few.
pub(crate) const PARQUET_LEVELS: usize = 2 * SCHEMA_LEVELS + 16;

/// The row groups of a Parquet file, whose numbers have 16 bits.
pub(crate) const ROW_GROUPS: usize = 1 << 15;

/// The levels of objects and arrays in a value of a shredded variant.
pub(crate) const VARIANT_LEVELS: usize = 500;
