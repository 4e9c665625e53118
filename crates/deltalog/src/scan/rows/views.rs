//! Returns strings and bytes as views (Arrow, "Variable-size Binary View Layout"). Long values stay in the memory of
//! their decompressed page and are not copied.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray};
use arrow::datatypes::{
    BinaryViewType, ByteViewType, DataType, Field, FieldRef, Fields, Schema, SchemaRef, StringViewType,
};

use crate::protocol::schema::is_variant;

/// An array that keeps at most this many bytes alive is not copied.
const FEW_BYTES: usize = 64 << 10;

/// Replaces all strings and bytes in `schema` with views, at every nesting level. Variants and the keys of maps are
/// unchanged.
pub(super) fn schema_with_views(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new_with_metadata(fields_with_views(schema.fields()), schema.metadata().clone()))
}

fn fields_with_views(fields: &Fields) -> Fields {
    fields.iter().map(with_views).collect()
}

/// Replaces all strings and bytes in the type of `field` with views, except for the keys of maps.
pub(super) fn with_views(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        _ if is_variant(field) => return Arc::clone(field),
        DataType::Struct(fields) => DataType::Struct(fields_with_views(fields)),
        DataType::List(element) => DataType::List(with_views(element)),
        DataType::Map(entries, sorted) => DataType::Map(with_view_values(entries), *sorted),
        leaf => view_of(leaf),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Replaces all strings and bytes in the values of a map with views. The keys are unchanged: to look up a key,
/// DataFusion compares the keys with a string or bytes that are not a view, which fails if the keys are views.
fn with_view_values(entries: &FieldRef) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return Arc::clone(entries) };
    let fields = fields.iter().enumerate();
    let fields = fields.map(|(index, field)| if index == 0 { Arc::clone(field) } else { with_views(field) });
    Arc::new(Field::clone(entries).with_data_type(DataType::Struct(fields.collect())))
}

/// Returns the view type for strings or bytes; returns other types unchanged.
pub(super) fn view_of(leaf: &DataType) -> DataType {
    match leaf {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    }
}

/// Returns `array`, or a copy of it if it uses only little of the memory that it keeps alive. This happens if it has
/// a few rows from many pages.
pub(super) fn compact(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => compact_views::<StringViewType>(array),
        DataType::BinaryView => compact_views::<BinaryViewType>(array),
        _ => array,
    }
}

fn compact_views<T: ByteViewType>(array: ArrayRef) -> ArrayRef {
    let views: &GenericByteViewArray<T> = array.as_byte_view();
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.len()).sum();
    if held <= FEW_BYTES || held / 2 <= views.total_buffer_bytes_used() {
        return array;
    }
    Arc::new(views.gc())
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn a_few_rows_of_a_large_buffer_are_copied() {
        let long: Vec<String> = (0..10_000).map(|i| format!("{i:0>40}")).collect();
        let all: ArrayRef = Arc::new(StringViewArray::from_iter_values(&long));
        let whole = compact(Arc::clone(&all));
        assert_eq!(whole.get_array_memory_size(), all.get_array_memory_size());
        let few = all.slice(100, 3);
        assert!(compact(Arc::clone(&few)).get_buffer_memory_size() < 1000);
        assert_eq!(&compact(Arc::clone(&few)), &few);
    }
}
