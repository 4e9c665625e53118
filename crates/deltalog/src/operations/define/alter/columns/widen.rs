//! Changes the type of a column to a wider type. (Table feature `typeWidening`; see [`crate::protocol::TypeChange`].)
//!
//! - The files are not changed; readers convert their values. Each change is recorded in the metadata of the field.
//! - The table must allow such changes with the property `delta.enableTypeWidening`.
//! - A void column can get any type in every table, without recording the change, because no file contains values of
//!   it.

use super::add::{check, with_mapping};
use super::change::ensure_no_nulls;
use super::references::ensure_unreferenced;
use super::{changed, type_name};
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::{edit_field, field_at};
use crate::protocol::schema::{is_iceberg_widening, is_widening};
use crate::protocol::{
    ArrayType, DataType, IcebergCompat, MapType, PrimitiveType, StructField, StructType, TableFeature,
};

/// Changes the type of the column at `path` to `to`. The new type must be primitive, unless the column is void. The
/// path may lead into the elements of an array, and into the keys and values of a map.
///
/// # Errors
/// Returns `InvalidArgument` for a column that does not exist or to which something else refers, if the table does
/// not allow type changes, and if the table has Iceberg compatibility and Iceberg does not allow this change. Returns
/// `SchemaMismatch` for a type that is not wider.
pub(in crate::operations::define::alter) fn widen(
    draft: &mut Draft<'_>,
    path: &ColumnPath,
    to: &DataType,
) -> Result<Operation> {
    let (field_path, inner) = nearest_field(&draft.schema, path)?;
    let field = field_at(&draft.schema, &field_path)?;
    let from = part_at(&field.data_type, inner).unwrap_or(&field.data_type);
    if *from == PrimitiveType::Void.into() {
        return fill_void(draft, &field_path, inner, to);
    }
    let DataType::Primitive(to) = *to else {
        return Err(not_wider(path, &type_name(from), &type_name(to)));
    };
    if !draft.metadata.is_enabled("delta.enableTypeWidening") {
        return Err(Error::invalid_argument(format!(
            "the type of the column '{path}' cannot be changed, because the table does not allow it"
        ))
        .with_hint("set the table property 'delta.enableTypeWidening' to 'true' first"));
    }
    ensure_unreferenced(draft, &field_path, "of another type")?;
    // "Writers must reject applying type changes not supported by Iceberg V2 when either … feature is supported."
    let of_iceberg = IcebergCompat::supported_by(draft.base.protocol()).map(IcebergCompat::feature);
    draft.schema = edit_field(&draft.schema, &field_path, |mut field| {
        let mut from = None;
        field.data_type = with_type(&field.data_type, inner, &mut |old| {
            from = Some(old);
            to.into()
        })
        .ok_or_else(|| not_wider(path, &type_name(&field.data_type), &to.to_string()))?;
        let Some(from) = from.filter(|from| *from != to) else { return Ok(field) };
        if !is_widening(from, to) {
            return Err(not_wider(path, &from.to_string(), &to.to_string()));
        }
        if let Some(feature) = of_iceberg.filter(|_| !is_iceberg_widening(from, to)) {
            return Err(Error::invalid_argument(format!(
                "the column '{path}' of type {from} cannot be widened to {to}: the table feature '{feature}' only \
                 allows changes that Iceberg supports"
            ))
            .with_hint("write the rows to a new column or table with that type"));
        }
        Ok(field.with_type_change(from, to, inner))
    })?;
    // The property may have been set while the protocol did not support the feature.
    if !draft.base.protocol().supports(&TableFeature::TypeWideningPreview) {
        draft.features.push(TableFeature::TypeWidening);
    }
    // The history shows the field with its new type, but with the metadata from before the change.
    let new = field_at(&draft.schema, &field_path)?;
    let metadata = field_at(draft.base.schema(), &field_path)?.metadata;
    Ok(changed(&field_path, &StructField { metadata, ..new }))
}

/// Changes the type of a void column, or of a void part of a column. No file contains values of it. If the column is
/// NOT NULL but the table has rows, these rows have NULL in the column, so the change is refused.
fn fill_void(
    draft: &mut Draft<'_>,
    field_path: &ColumnPath,
    inner: &[String],
    to: &DataType,
) -> Result<Operation> {
    ensure_unreferenced(draft, field_path, "of another type")?;
    let old = field_at(&draft.schema, field_path)?;
    if inner.is_empty() && !old.nullable {
        ensure_no_nulls(draft, field_path, "allow NULL in the column first")?;
        draft.depends_on_rows = true;
    }
    let new = StructField::new(&old.name, to.clone(), true);
    check(draft, &new)?;
    let new = with_mapping(draft, &new)?.data_type;
    draft.schema = edit_field(&draft.schema, field_path, |mut field| {
        field.data_type = with_type(&field.data_type, inner, &mut |_| new.clone())
            .ok_or_else(|| not_wider(field_path, &type_name(&field.data_type), &type_name(to)))?;
        Ok(field)
    })?;
    Ok(changed(field_path, &StructField { metadata: old.metadata, ..field_at(&draft.schema, field_path)? }))
}

fn not_wider(path: &ColumnPath, from: &str, to: &str) -> Error {
    Error::schema_mismatch(format!("the column '{path}' has the type {from}, and {to} is not a wider type"))
        .with_hint("write the rows to a new column or table with that type")
}

/// Splits a path after its innermost struct field. The second part leads into arrays and maps, such as `element`.
fn nearest_field<'a>(schema: &StructType, path: &'a ColumnPath) -> Result<(ColumnPath, &'a [String])> {
    let parts = path.parts();
    for length in (1..=parts.len()).rev() {
        let (field, inner) = parts.split_at(length);
        let field = ColumnPath::new(field);
        if field_at(schema, &field).is_ok() {
            return Ok((field, inner));
        }
    }
    field_at(schema, path).map(|_| (path.clone(), Default::default()))
}

/// Returns the type of the part of `data_type` at `path`.
fn part_at<'a>(data_type: &'a DataType, path: &[String]) -> Option<&'a DataType> {
    let Some((part, rest)) = path.split_first() else { return Some(data_type) };
    match (data_type, part.to_lowercase().as_str()) {
        (DataType::Array(array), "element") => part_at(&array.element_type, rest),
        (DataType::Map(map), "key") => part_at(&map.key_type, rest),
        (DataType::Map(map), "value") => part_at(&map.value_type, rest),
        _ => None,
    }
}

/// Returns `data_type` with the primitive type at `path` replaced; `None` if there is no primitive type at `path`.
fn with_type(
    data_type: &DataType,
    path: &[String],
    replace: &mut dyn FnMut(PrimitiveType) -> DataType,
) -> Option<DataType> {
    let part = path.split_first().map(|(part, rest)| (part.to_lowercase(), rest));
    match (data_type, part.as_ref().map(|(part, rest)| (part.as_str(), *rest))) {
        (DataType::Primitive(old), None) => Some(replace(*old)),
        (DataType::Array(array), Some(("element", rest))) => {
            let element_type = with_type(&array.element_type, rest, replace)?;
            Some(ArrayType { element_type, ..ArrayType::clone(array) }.into())
        }
        (DataType::Map(map), Some(("key", rest))) => {
            let key_type = with_type(&map.key_type, rest, replace)?;
            Some(MapType { key_type, ..MapType::clone(map) }.into())
        }
        (DataType::Map(map), Some(("value", rest))) => {
            let value_type = with_type(&map.value_type, rest, replace)?;
            Some(MapType { value_type, ..MapType::clone(map) }.into())
        }
        _ => None,
    }
}
