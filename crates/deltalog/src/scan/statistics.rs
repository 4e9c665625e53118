//! Converts statistics of files to the names and types of the table's schema. (Protocol: "Per-file Statistics",
//! "Column Mapping"; type widening.)
//!
//! - The log uses physical names; the results have logical names.
//! - Statistics of old files may have a narrower type. Their values are also valid in the wider type, with one
//!   exception: the shortest decimal text of a float, such as `1.1`, is a different number when it is read as a double.
//!   The bounds of a column that was widened from `float` to `double` are therefore loosened.
//! - If no column is renamed or was widened from `float`, nothing is copied.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Float64Type};

use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::protocol::{ColumnMappingMode, DataType as DeltaType, MappedSchema, PrimitiveType, StructField};
use crate::values::stats::{decode_stats, decode_stats_with_origin, normalize_stats, stats_fields};

/// The leaf columns whose statistics are requested.
#[derive(Debug, Clone)]
pub(crate) struct StatisticsColumns {
    schema: MappedSchema,
    /// The columns, with the names that the log uses.
    physical: Vec<ColumnPath>,
    /// The fields of the statistics, with logical names.
    fields: Fields,
    /// The columns that once had the type `float`, by their logical names.
    formerly_float: Vec<ColumnPath>,
}

impl StatisticsColumns {
    /// Requests the leaf columns `columns` of `schema`, which are given by logical names.
    ///
    /// # Errors
    /// `InvalidArgument` if a column is not a leaf column.
    pub(crate) fn new(schema: &MappedSchema, columns: &[ColumnPath]) -> Result<Self> {
        let fields = stats_fields(schema.arrow(), columns)?;
        let missing = |column: &ColumnPath| Error::invalid_argument(format!("{column} is not a leaf column"));
        let physical = |column: &ColumnPath| {
            schema.physical_path(column.parts()).map(ColumnPath::new).ok_or_else(|| missing(column))
        };
        let physical = columns.iter().map(physical).collect::<Result<_>>()?;
        let logical = schema.logical();
        let first =
            |column: &ColumnPath| logical.fields().get(logical.exact_index_of(column.parts().first()?)?);
        let was_float =
            |column: &&ColumnPath| first(column).is_some_and(|field| was_float(field, column.parts()));
        let formerly_float = columns.iter().filter(was_float).cloned().collect();
        Ok(Self { schema: schema.clone(), physical, fields, formerly_float })
    }

    /// Returns the fields of the results of [`StatisticsColumns::decode`].
    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Parses statistics from JSON `texts`, one for each file.
    ///
    /// # Errors
    /// Never fails because of the contents of a text.
    pub(crate) fn decode<'a>(&self, texts: impl IntoIterator<Item = Option<&'a str>>) -> Result<StructArray> {
        self.logical(decode_stats(texts, self.schema.physical_arrow(), &self.physical)?)
    }

    /// Parses statistics from JSON `texts` as [`StatisticsColumns::decode`] does. Also returns for each file whether
    /// this crate has computed its statistics.
    ///
    /// # Errors
    /// Never fails because of the contents of a text.
    pub(crate) fn decode_with_origin<'a>(
        &self,
        texts: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Result<(StructArray, BooleanArray)> {
        let (stats, is_own) = decode_stats_with_origin(texts, self.schema.physical_arrow(), &self.physical)?;
        Ok((self.logical(stats)?, is_own))
    }

    /// Parses statistics from JSON `texts` as [`StatisticsColumns::decode`] does, but keeps the names that the log
    /// uses.
    ///
    /// # Errors
    /// Never fails because of the contents of a text.
    pub(crate) fn decode_physical<'a>(
        &self,
        texts: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Result<StructArray> {
        renamed(&self.decode(texts)?, &self.physical_fields()?)
    }

    /// Returns the fields of the results of [`StatisticsColumns::decode_physical`].
    ///
    /// # Errors
    /// `InvalidArgument` if a column is not a leaf column.
    pub(crate) fn physical_fields(&self) -> Result<Fields> {
        stats_fields(self.schema.physical_arrow(), &self.physical)
    }

    /// Converts statistics that a checkpoint stores as a struct.
    ///
    /// # Errors
    /// Never fails because of the contents of the struct.
    pub(super) fn normalize(&self, parsed: &StructArray) -> Result<StructArray> {
        self.logical(normalize_stats(parsed, self.schema.physical_arrow(), &self.physical)?)
    }

    /// Returns the paths of the columns, with the names that the log uses.
    pub(super) fn physical_paths(&self) -> Arc<[Vec<String>]> {
        self.physical.iter().map(|column| column.parts().to_vec()).collect()
    }

    /// Renames the fields of `stats` to logical names.
    fn logical(&self, stats: StructArray) -> Result<StructArray> {
        let stats = match self.schema.mode() {
            ColumnMappingMode::None => stats,
            _ => renamed(&stats, &self.fields)?,
        };
        self.formerly_float.iter().try_fold(stats, |stats, column| {
            // The text of the bound is rounded twice: to a double, and then to a float. The result may therefore be a
            // neighbor of the stored float.
            let stats = with_leaf(&stats, "minValues", column.parts(), |bound| {
                f64::from((bound as f32).next_down())
            })?;
            with_leaf(&stats, "maxValues", column.parts(), |bound| f64::from((bound as f32).next_up()))
        })
    }
}

/// Returns whether the column at `path`, which is `field` or a part of it, once had the type `float`.
fn was_float(field: &StructField, path: &[String]) -> bool {
    let inner = path.get(1..).unwrap_or_default();
    match (&field.data_type, inner) {
        (DeltaType::Struct(fields), [name, ..]) => {
            let inside = fields.exact_index_of(name).and_then(|at| fields.fields().get(at));
            inside.is_some_and(|field| was_float(field, inner))
        }
        (_, []) => {
            field.type_changes().unwrap_or_default().iter().any(|change| change.from == PrimitiveType::Float)
        }
        _ => false,
    }
}

/// Renames the fields of `array` to the names in `fields`, which has the same shape.
fn renamed(array: &StructArray, fields: &Fields) -> Result<StructArray> {
    let column = |(column, field): (&ArrayRef, &Arc<Field>)| -> Result<ArrayRef> {
        match field.data_type() {
            DataType::Struct(inner) => {
                Ok(Arc::new(renamed(column.as_struct_opt().ok_or_else(unfit)?, inner)?))
            }
            _ => Ok(Arc::clone(column)),
        }
    };
    let columns = array.columns().iter().zip(fields).map(column).collect::<Result<_>>()?;
    StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len())
        .map_err(|error| unfit().with_source(error))
}

/// Applies `change` to the doubles of a column in `array`: in the field `name`, at `path`.
fn with_leaf(
    array: &StructArray,
    name: &str,
    path: &[String],
    change: impl Fn(f64) -> f64,
) -> Result<StructArray> {
    let (fields, mut columns, nulls) = array.clone().into_parts();
    let at = fields.find(name).and_then(|(index, _)| columns.get_mut(index)).ok_or_else(unfit)?;
    *at = match path.split_first() {
        Some((name, path)) => Arc::new(with_leaf(at.as_struct_opt().ok_or_else(unfit)?, name, path, change)?),
        None => {
            Arc::new(at.as_primitive_opt::<Float64Type>().ok_or_else(unfit)?.unary::<_, Float64Type>(change))
        }
    };
    StructArray::try_new_with_length(fields, columns, nulls, array.len())
        .map_err(|error| unfit().with_source(error))
}

fn unfit() -> Error {
    Error::corrupt_log("statistics do not match the table's schema")
}
