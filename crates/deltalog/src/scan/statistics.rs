//! Statistics of files by the names and in the types that users know. (Protocol: "Per-file Statistics",
//! "Column Mapping"; type widening.)
//!
//! - The log names columns by their physical names; what leaves here has the names of the table's schema.
//! - Old files' statistics are those of a narrower type, and values of the wider type all the same, but for
//!   one: `1.1` is the shortest text of a float that is a little more than the double of the same text. So
//!   the bounds of a column that was widened from `float` to `double` are loosened.
//! - Without either nothing is copied.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Float64Type};

use crate::error::{Error, Result};
use crate::predicate::ColumnPath;
use crate::protocol::{ColumnMappingMode, DataType as DeltaType, MappedSchema, PrimitiveType, StructType};
use crate::stats::{decode_stats, normalize_stats, stats_fields};

/// The leaf columns whose statistics are wanted.
#[derive(Debug, Clone)]
pub(crate) struct StatisticsColumns {
    schema: MappedSchema,
    /// By the names of the log.
    physical: Vec<ColumnPath>,
    /// The statistics by the names of users.
    fields: Fields,
    /// Those of the columns that were of type `float`, by the names of users.
    once_float: Vec<ColumnPath>,
}

impl StatisticsColumns {
    /// The leaf columns `columns` of `schema`, by the names of users.
    ///
    /// # Errors
    /// `InvalidArgument` if one is no leaf column.
    pub(crate) fn new(schema: &MappedSchema, columns: &[ColumnPath]) -> Result<Self> {
        let fields = stats_fields(schema.arrow(), columns)?;
        let missing = |column: &ColumnPath| Error::invalid_argument(format!("{column} is not a leaf column"));
        let physical = |column: &ColumnPath| {
            schema.physical_path(column.parts()).map(ColumnPath::new).ok_or_else(|| missing(column))
        };
        let physical = columns.iter().map(physical).collect::<Result<_>>()?;
        let once_float =
            columns.iter().filter(|column| was_float(schema.logical(), column.parts())).cloned().collect();
        Ok(Self { schema: schema.clone(), physical, fields, once_float })
    }

    /// The fields of what [`StatisticsColumns::decode`] returns.
    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The statistics that `texts` say, one text a file.
    ///
    /// # Errors
    /// None that a text could cause.
    pub(crate) fn decode<'a>(&self, texts: impl IntoIterator<Item = Option<&'a str>>) -> Result<StructArray> {
        self.logical(decode_stats(texts, self.schema.physical_arrow(), &self.physical)?)
    }

    /// The same of statistics that a checkpoint has as a struct.
    ///
    /// # Errors
    /// None that the struct could cause.
    pub(super) fn normalize(&self, parsed: &StructArray) -> Result<StructArray> {
        self.logical(normalize_stats(parsed, self.schema.physical_arrow(), &self.physical)?)
    }

    /// The columns by the names of the log.
    pub(super) fn physical_paths(&self) -> Arc<[Vec<String>]> {
        self.physical.iter().map(|column| column.parts().to_vec()).collect()
    }

    /// `stats` by the names of users.
    fn logical(&self, stats: StructArray) -> Result<StructArray> {
        let stats = match self.schema.mode() {
            ColumnMappingMode::None => stats,
            _ => renamed(&stats, &self.fields)?,
        };
        self.once_float.iter().try_fold(stats, |stats, column| {
            // The float that has the text of a bound is the nearest one, or next to that: a text is rounded
            // twice on the way.
            let stats = with_leaf(&stats, "minValues", column.parts(), |bound| {
                f64::from((bound as f32).next_down())
            })?;
            with_leaf(&stats, "maxValues", column.parts(), |bound| f64::from((bound as f32).next_up()))
        })
    }
}

/// Whether the column at `path` was of type `float` once.
fn was_float(schema: &StructType, path: &[String]) -> bool {
    let Some((name, inner)) = path.split_first() else { return false };
    let Some(field) = schema.fields().iter().find(|field| field.name == *name) else { return false };
    match (&field.data_type, inner) {
        (DeltaType::Struct(fields), inner) => was_float(fields, inner),
        (_, []) => {
            field.type_changes().unwrap_or_default().iter().any(|change| change.from == PrimitiveType::Float)
        }
        _ => false,
    }
}

/// `array` with the names of `fields`, which are of the same shape.
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

/// `array` with `change` made to the doubles of the column at `name` and `path` in it.
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
    Error::corrupt_log("statistics do not fit the table's schema")
}
