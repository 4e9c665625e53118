//! The limits of what tables may contain. Exceeding one is an error, so that no table can crash the process.

/// The levels of structs, arrays and maps in a table's schema.
pub(crate) const SCHEMA_LEVELS: usize = 100;

/// The levels of groups in the schema of a Parquet file. An array takes two of them, and a checkpoint adds a few.
pub(crate) const PARQUET_LEVELS: usize = 2 * SCHEMA_LEVELS + 16;

/// The row groups of a Parquet file, whose numbers have 16 bits.
pub(crate) const ROW_GROUPS: usize = 1 << 15;

/// The levels of objects and arrays in a value of a shredded variant.
pub(crate) const VARIANT_LEVELS: usize = 500;

/// The operators, functions, columns and constants of an expression, without the constants in the lists of IN.
pub(crate) const EXPRESSION_NODES: usize = 250_000;

/// The levels of parentheses, functions and CASE in the text of an expression.
pub(crate) const TEXT_LEVELS: usize = 100;

/// The levels of values and conditions in an expression. A function of a text may take four of them.
pub(crate) const EXPRESSION_LEVELS: usize = 4 * TEXT_LEVELS;

/// The bytes that the values of an expression and of its operands may have at once, for the rows of a batch. Users may
/// set another number (`predicate::expression_bytes`).
pub(crate) const EXPRESSION_BYTES: usize = 128 << 20;

/// The maximum size in bytes of a constant that is computed only once, rather than for each batch.
pub(crate) const CONSTANT_BYTES: usize = 4 << 10;

/// The maximum size in bytes of the text of a regular expression, and of the memory that it takes when compiled.
pub(crate) const REGEX_TEXT: usize = 16 << 10;
pub(crate) const REGEX_BYTES: usize = 4 << 20;

/// The levels of groups and repetitions in a regular expression.
pub(crate) const REGEX_LEVELS: u32 = 100;

/// The bytes of the text of an expression.
pub(crate) const EXPRESSION_TEXT: usize = 16 << 20;

/// The bytes of a server's answer that is not a file: a page of a listing, or credentials.
#[cfg(feature = "_cloud")]
pub(crate) const ANSWER_BYTES: usize = 64 << 20;

/// The bytes of a response in which a server refuses a request.
#[cfg(feature = "_cloud")]
pub(crate) const REFUSAL_BYTES: usize = 1 << 20;
