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

/// The bytes of a server's answer that is not a file: a page of a listing, or credentials.
#[cfg(feature = "_cloud")]
pub(crate) const ANSWER_BYTES: usize = 64 << 20;

/// The bytes of the answer by which a server refuses a request.
#[cfg(feature = "_cloud")]
pub(crate) const REFUSAL_BYTES: usize = 1 << 20;
