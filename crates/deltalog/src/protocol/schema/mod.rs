//! The schema of a table. Protocol: "Schema Serialization Format".
//!
//! - Types the protocol does not know are refused by name.
//! - The metadata of a field is kept byte for byte, keys in their order, whatever is in it.
//! - Names are unique without regard to case, as Spark resolves them.
//! - Nesting is bounded, so that no schema can exhaust the stack.

mod arrow;
mod json;
mod types;

pub use types::{ArrayType, DataType, MapType, PrimitiveType, StructField, StructType};

/// How deep types may nest.
const MAX_DEPTH: usize = 100;
