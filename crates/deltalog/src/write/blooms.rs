//! Selects the columns of new files that have Bloom filters (Parquet, "Bloom Filter"), according to the table
//! properties `deltalog.bloomFilterColumns`, `deltalog.bloomFilterFpp` and `deltalog.bloomFilterNdv`.
//!
//! - The Delta protocol does not define these properties; they are specific to this crate. Other writers ignore them
//!   and write files without Bloom filters, which can be read as well.
//! - The list of columns has the same syntax as `delta.dataSkippingStatsColumns`: a struct stands for all of its
//!   fields. The list is checked when it is set. Later, a name that is missing from the schema is ignored, because
//!   the column may have been dropped.
//! - Filters are only written for types with a single binary form per value, because a look-up hashes the bytes:
//!   integers, dates, timestamps, decimals, strings and binary. Floating-point numbers have no filters, because zero
//!   and NaN have several forms.
//! - A filter is sized for `deltalog.bloomFilterNdv` distinct values in a row group, or for the number of rows in a
//!   row group if that property is not set. Then it is made smaller as long as its rate of false positives stays
//!   below `deltalog.bloomFilterFpp`.

use std::collections::{BTreeMap, HashSet};

use arrow::datatypes::DataType;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::schema::types::ColumnPath as FilePath;

use super::indexed::{parse_names, resolve};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{ColumnPath, FieldNames};
use crate::protocol::{ColumnMappingMode, MappedSchema, StructType};
use crate::values::stats::{IndexedColumns, indexed, leaf_columns};

/// The table property that lists the columns for which new files have Bloom filters.
pub(crate) const COLUMNS: &str = "deltalog.bloomFilterColumns";
/// The table property with the rate of false positives of Bloom filters, between 0 and 1.
const RATE: &str = "deltalog.bloomFilterFpp";
/// The table property with the expected number of distinct values in a row group, which determines the size of Bloom
/// filters.
const VALUES: &str = "deltalog.bloomFilterNdv";

/// The rate of false positives if the table does not state one. It is the default of Parquet's Java writer.
const DEFAULT_RATE: f64 = 0.01;

/// The Bloom filters of a table's files.
#[derive(Debug, Clone, PartialEq)]
pub struct BloomFilters {
    /// The leaf columns that have Bloom filters, by their physical names.
    columns: Vec<ColumnPath>,
    rate: f64,
    values: Option<u64>,
}

impl Default for BloomFilters {
    fn default() -> Self {
        Self { columns: Vec::new(), rate: DEFAULT_RATE, values: None }
    }
}

impl BloomFilters {
    /// Returns the filters that the table properties `configuration` define.
    ///
    /// # Errors
    /// Returns `CorruptLog`, which names the property, if its value is invalid.
    pub(super) fn of(configuration: &BTreeMap<String, String>, schema: &MappedSchema) -> Result<Self> {
        if !configuration.contains_key(COLUMNS) {
            return Ok(Self::default());
        }
        let paths = parsed(configuration, COLUMNS, parse_names, ErrorKind::CorruptLog)?.unwrap_or_default();
        let names = FieldNames::new(schema.arrow().fields());
        let chosen = paths.iter().filter_map(|path| resolve(schema.arrow().fields(), &names, path));
        let chosen = chosen.filter_map(|path| schema.physical_path(path.parts()).map(ColumnPath::new));
        let leaves = indexed(schema.physical_arrow(), &IndexedColumns::Chosen(chosen.collect()));
        let columns = leaves.into_iter().filter(|(_, data_type)| has_one_form(data_type));
        Ok(Self {
            columns: columns.map(|(path, _)| path).collect(),
            rate: parsed(configuration, RATE, parse_rate, ErrorKind::CorruptLog)?.unwrap_or(DEFAULT_RATE),
            // A row group cannot have more distinct values than this. A larger number would only make a writer allocate
            // too much memory.
            values: parsed(configuration, VALUES, parse_values, ErrorKind::CorruptLog)?
                .map(|values| values.min(MOST_VALUES)),
        })
    }

    /// Returns the columns that have Bloom filters, by their physical names.
    pub fn columns(&self) -> &[ColumnPath] {
        &self.columns
    }

    /// Returns the maximum rate of false positives of the filters.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the expected number of distinct values in a row group, if the table states it.
    pub fn values(&self) -> Option<u64> {
        self.values
    }

    /// Adds the Bloom filters to the properties of a Parquet writer.
    pub(super) fn ask(&self, mut writer: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        for column in &self.columns {
            let path = FilePath::new(column.parts().to_vec());
            writer = writer.set_column_bloom_filter_fpp(path.clone(), self.rate);
            if let Some(values) = self.values {
                writer = writer.set_column_bloom_filter_max_ndv(path, values);
            }
        }
        writer
    }
}

/// The maximum number of rows in a row group.
const MOST_VALUES: u64 = 1 << 20;

/// Returns whether equal values of a type are always stored as the same bytes.
fn has_one_form(data_type: &DataType) -> bool {
    data_type.is_signed_integer()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Timestamp(..)
                | DataType::Decimal128(..)
                | DataType::Utf8
                | DataType::Binary
        )
}

/// Checks the properties of Bloom filters before they are set on a table with this schema.
///
/// # Errors
/// Returns `InvalidArgument` for an invalid value, for a column that does not exist, and for a column whose type
/// cannot have a Bloom filter.
pub(crate) fn check_bloom_filters(properties: &BTreeMap<String, String>, schema: &StructType) -> Result<()> {
    let kind = ErrorKind::InvalidArgument;
    parsed(properties, RATE, parse_rate, kind)?;
    parsed(properties, VALUES, parse_values, kind)?;
    let Some(paths) = parsed(properties, COLUMNS, parse_names, kind)? else { return Ok(()) };
    let schema = MappedSchema::new(schema.clone(), ColumnMappingMode::None)?;
    let names = FieldNames::new(schema.arrow().fields());
    let leaves = leaf_columns(schema.arrow());
    let usable = leaves.iter().filter(|(_, data_type)| has_one_form(data_type)).map(|(path, _)| path.parts());
    let usable: HashSet<&[String]> =
        usable.flat_map(|path| (1..=path.len()).filter_map(|count| path.get(..count))).collect();
    for path in paths {
        let name = ColumnPath::new(path.iter().cloned());
        let Some(found) = resolve(schema.arrow().fields(), &names, &path) else {
            return Err(Error::invalid_argument(format!(
                "'{COLUMNS}' names the column {name}, which does not exist"
            )));
        };
        if !usable.contains(found.parts()) {
            return Err(Error::invalid_argument(format!("the column {name} cannot have a Bloom filter"))
                .with_hint(
                    "choose columns of whole numbers, dates, timestamps, decimals, strings or binary",
                ));
        }
    }
    Ok(())
}

fn parse_rate(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|rate: &f64| *rate > 0.0 && *rate < 1.0)
}

fn parse_values(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|values: &u64| *values > 0)
}

/// Returns the value of a property, if it is set.
fn parsed<T>(
    properties: &BTreeMap<String, String>,
    property: &str,
    parse: impl Fn(&str) -> Option<T>,
    kind: ErrorKind,
) -> Result<Option<T>> {
    let Some(text) = properties.get(property) else { return Ok(None) };
    let valid = match property {
        RATE => "a number between 0 and 1 such as 0.01",
        VALUES => "a whole number of at least 1",
        _ => "a list of columns such as 'id, address.city'",
    };
    let invalid = || {
        Error::new(kind, format!("the table property '{property}' has the invalid value '{text}'"))
            .with_hint(format!("set the property to {valid}"))
    };
    parse(text).map(Some).ok_or_else(invalid)
}
