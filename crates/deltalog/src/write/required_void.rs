//! Void columns that are NOT NULL. No row can be written to such a column, because every value of a void column is
//! NULL.
//!
//! An Arrow field of a void column cannot be NOT NULL, so [`fit`](super::fit::fit) does not check it. If a field of a
//! struct is void and NOT NULL, only rows in which the struct is NULL are allowed.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;

use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::protocol::{DataType, PrimitiveType, StructType};

/// Returns the void columns, and void fields of structs, that are NOT NULL.
pub(super) fn required_voids(schema: &StructType) -> Vec<ColumnPath> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &StructType, parents: &mut Vec<String>, found: &mut Vec<ColumnPath>) {
    for field in schema.fields() {
        parents.push(field.name.clone());
        match &field.data_type {
            DataType::Struct(inner) => collect(inner, parents, found),
            DataType::Primitive(PrimitiveType::Void) if !field.nullable => {
                found.push(ColumnPath::new(parents.iter()));
            }
            _ => {}
        }
        parents.pop();
    }
}

/// Refuses rows that have a NULL in a void column that is NOT NULL.
///
/// # Errors
/// Returns `SchemaMismatch`, which names the column.
pub(super) fn check_required(rows: &RecordBatch, columns: &[ColumnPath]) -> Result<()> {
    match columns.iter().find(|column| has_null(rows, column)) {
        Some(column) => Err(Error::schema_mismatch(format!(
            "column '{column}' contains NULL, but it is NOT NULL in the table, and its type void has no other value"
        ))
        .with_hint("give the column another type, or allow NULL in it")),
        None => Ok(()),
    }
}

/// Returns whether there is a row in which none of the structs that contain the void column is NULL.
fn has_null(rows: &RecordBatch, column: &ColumnPath) -> bool {
    let Some((_, structs)) = column.parts().split_last() else { return false };
    let mut nulls: Option<NullBuffer> = None;
    let mut inner: Option<&ArrayRef> = None;
    for name in structs {
        let found = match inner {
            None => rows.column_by_name(name),
            Some(outer) => outer.as_struct_opt().and_then(|outer| outer.column_by_name(name)),
        };
        let Some(found) = found else { return false };
        nulls = NullBuffer::union(nulls.as_ref(), found.nulls());
        inner = Some(found);
    }
    rows.num_rows() > nulls.map_or(0, |nulls| nulls.null_count())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{NullArray, StructArray, new_null_array};
    use arrow::datatypes::{DataType as ArrowType, Field, Fields};

    use super::*;

    fn rows(nulls: Option<NullBuffer>, count: usize) -> RecordBatch {
        let fields = Fields::from(vec![Field::new("v", ArrowType::Null, true)]);
        let inner: ArrayRef = Arc::new(StructArray::new(fields, vec![Arc::new(NullArray::new(count))], None));
        let outer = Fields::from(vec![Field::new("r", inner.data_type().clone(), true)]);
        let outer: ArrayRef = Arc::new(StructArray::new(outer, vec![inner], nulls));
        RecordBatch::try_from_iter([("s", outer), ("b", new_null_array(&ArrowType::Null, count))]).unwrap()
    }

    #[test]
    fn a_null_is_found_unless_an_enclosing_struct_is_null() {
        let nested = [ColumnPath::new(["s", "r", "v"])];
        let error = check_required(&rows(None, 2), &nested).unwrap_err().to_string();
        assert!(error.contains("'s.r.v' contains NULL"), "{error}");
        assert!(check_required(&rows(Some(vec![false, true].into()), 2), &nested).is_err());
        check_required(&rows(Some(NullBuffer::new_null(2)), 2), &nested).unwrap();
        let top = [ColumnPath::new(["b"])];
        assert!(check_required(&rows(Some(NullBuffer::new_null(2)), 2), &top).is_err());
        check_required(&rows(None, 0), &[ColumnPath::new(["b"]), ColumnPath::new(["s", "r", "v"])]).unwrap();
    }
}
