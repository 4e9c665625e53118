//! Strings with a collation, which are not compared byte by byte. (Table feature `collations`.)
//!
//! - Predicates of scans compare the bytes of such strings, which the protocol allows readers to do. But the meaning
//!   of a constraint, a generated column or the predicate of an overwrite depends on the collation, and only Spark
//!   implements collations. An expression of these kinds that reads such a column is therefore refused.
//! - A generated column itself may have a collation, because its value is stored and not compared.

use crate::error::{Error, Result};
use crate::expression::predicate::BoundColumn;
use crate::protocol::{COLLATIONS, DataType, StructType};

/// Refuses columns with strings that have a collation.
///
/// # Errors
/// Returns InvalidArgument, which names the first such column.
pub(crate) fn ensure_bytes(columns: &[BoundColumn], schema: &StructType) -> Result<()> {
    match columns.iter().find(|column| has_collation(schema, column.path.parts())) {
        None => Ok(()),
        Some(column) => Err(Error::invalid_argument(format!(
            "column {} has a collation, which only Spark implements",
            column.path
        ))),
    }
}

/// Returns whether the column at `path`, or a field inside of it, has a collation.
fn has_collation(schema: &StructType, path: &[String]) -> bool {
    let Some((name, inner)) = path.split_first() else { return false };
    let Some(field) = schema.field(name) else { return false };
    if field.metadata.get(COLLATIONS).is_some() {
        return true;
    }
    match (&field.data_type, inner) {
        (DataType::Struct(fields), [_, ..]) => has_collation(fields, inner),
        (data_type, _) => data_type.any_field(&mut |field| field.metadata.get(COLLATIONS).is_some()),
    }
}
