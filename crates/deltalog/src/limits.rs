//! Limits on what a table may contain. Exceeding one is an error, so that no table can crash the process.

/// The maximum nesting depth of structs, arrays and maps in a table's schema.
pub(crate) const SCHEMA_LEVELS: usize = 100;

/// The maximum nesting depth of groups in the schema of a Parquet file. An array takes two levels, and a checkpoint
/// adds a few.
pub(crate) const PARQUET_LEVELS: usize = 2 * SCHEMA_LEVELS + 16;

/// The maximum number of row groups in a Parquet file. Parquet stores the number of a row group in 16 bits.
pub(crate) const ROW_GROUPS: usize = 1 << 15;

/// The maximum nesting depth of objects and arrays in a value of a shredded variant.
pub(crate) const VARIANT_LEVELS: usize = 500;

/// The maximum number of operators, functions, columns and constants in an expression. Constants in IN lists do not
/// count.
pub(crate) const EXPRESSION_NODES: usize = 250_000;

/// The maximum nesting depth of parentheses, functions and CASE in the text of an expression.
pub(crate) const TEXT_LEVELS: usize = 100;

/// The maximum depth of the tree of a parsed expression. One function in the text may become four levels of the tree.
pub(crate) const EXPRESSION_LEVELS: usize = 4 * TEXT_LEVELS;

/// The maximum memory in bytes for the values of an expression and its operands, computed for one batch of rows. Users
/// may set another limit (`predicate::expression_bytes`).
pub(crate) const EXPRESSION_BYTES: usize = 128 << 20;

/// The maximum size in bytes of a constant subexpression whose value is computed only once, not again for each batch.
pub(crate) const CONSTANT_BYTES: usize = 4 << 10;

/// The maximum size in bytes of the text of a regular expression, and of the memory that it takes when compiled.
pub(crate) const REGEX_TEXT: usize = 16 << 10;
pub(crate) const REGEX_BYTES: usize = 4 << 20;

/// The maximum nesting depth of groups and repetitions in a regular expression.
pub(crate) const REGEX_LEVELS: u32 = 100;

/// The maximum length of the text of an expression, in bytes.
pub(crate) const EXPRESSION_TEXT: usize = 16 << 20;

/// The maximum size in bytes of a server's response that is not a file, such as a page of a listing or credentials.
#[cfg(feature = "_cloud")]
pub(crate) const ANSWER_BYTES: usize = 64 << 20;

/// The maximum size in bytes of an error response of a server.
#[cfg(feature = "_cloud")]
pub(crate) const REFUSAL_BYTES: usize = 1 << 20;
