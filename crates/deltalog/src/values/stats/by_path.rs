//! An index of the columns in nested structs, by path. It is needed because a predicate may read thousands of columns.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray, StructArray};

/// The fields of a struct. Each field has its own nested fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByPath(HashMap<String, (ArrayRef, Self)>);

impl ByPath {
    /// Indexes the fields of `array`. If several fields have the same name, the first one is used.
    pub(crate) fn new(array: &StructArray) -> Self {
        let mut fields = HashMap::with_capacity(array.num_columns());
        for (field, column) in array.fields().iter().zip(array.columns()) {
            fields.entry(field.name().clone()).or_insert_with(|| {
                let inner = column.as_struct_opt().map(Self::new).unwrap_or_default();
                (ArrayRef::clone(column), inner)
            });
        }
        Self(fields)
    }

    /// Returns the column at `path`, which lists the names from the outermost struct to the column itself.
    pub(crate) fn get<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&ArrayRef> {
        let mut path = path.into_iter();
        let first = self.0.get(path.next()?)?;
        path.try_fold(first, |(_, inner), name| inner.0.get(name)).map(|(array, _)| array)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, Int64Array};
    use arrow::datatypes::{DataType, Field, Fields};

    use super::*;

    #[test]
    fn columns_are_found_by_path_and_the_first_of_equal_names_counts() {
        let numbers = |number| Arc::new(Int64Array::from(vec![number])) as ArrayRef;
        let of = |columns: Vec<(&str, ArrayRef)>| {
            let fields =
                columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
            StructArray::new(
                fields.collect::<Fields>(),
                columns.iter().map(|(_, array)| array.clone()).collect(),
                None,
            )
        };
        let inner: ArrayRef = Arc::new(of(vec![("a", numbers(1)), ("b.c", numbers(2)), ("a", numbers(3))]));
        let found = ByPath::new(&of(vec![("s", inner), ("a", numbers(4))]));
        let value = |path: &[&str]| {
            let array = found.get(path.iter().copied())?;
            array.as_primitive_opt::<arrow::datatypes::Int64Type>().map(|array| array.value(0))
        };
        assert_eq!([value(&["s", "a"]), value(&["s", "b.c"]), value(&["a"])], [Some(1), Some(2), Some(4)]);
        assert_eq!([value(&[]), value(&["b"]), value(&["a", "a"]), value(&["s", "b", "c"])], [None; 4]);
        assert!(matches!(found.get(["s"]).unwrap().data_type(), DataType::Struct(_)));
    }
}
