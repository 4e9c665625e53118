//! Finds the partition columns of the files to convert, and their values. (Protocol: "Partition Value
//! Serialization".)
//!
//! - Every file has a value, or NULL, for each partition column, and for no other column. Directories without `=` in
//!   their name are ignored.
//! - Names of directories are decoded: `%XX` are bytes of UTF-8, and `__HIVE_DEFAULT_PARTITION__` is NULL.
//! - Values are parsed with the column's type, and written as the log spells them. A string that is not a valid value
//!   is refused.

use arrow::array::{ArrayRef, TimestampMicrosecondArray};
use std::sync::Arc;

use super::inferred::inferred;
use super::{FoundFile, named};
use crate::error::{Error, Result};
use crate::expression::predicate::ZoneClock;
use crate::protocol::text::{Offset, parse_exact_timestamp};
use crate::protocol::{PartitionColumnBuilder, PrimitiveType, StructField, StructType, to_log_string};
use crate::write::partition_of_directory;

/// The partition values that several files share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partition {
    /// The path of the directory, or of one of its files, for error messages.
    pub(super) directory: String,
    /// The partition columns and their values, in the order of the directories.
    pub(super) values: Vec<(String, Option<String>)>,
}

impl Partition {
    /// Parses the partition values in the path of a directory.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a name like `=1` or `a=`, for bytes that are not UTF-8, and for a column that
    /// occurs twice.
    pub(super) fn of_directory(directory: &str) -> Result<Self> {
        let mut values: Vec<(String, Option<String>)> = Vec::new();
        let refused = |what: &str| Error::invalid_argument(what).at_path(directory);
        for name in directory.split('/').filter(|name| name.contains('=')) {
            let Some((column, value)) = partition_of_directory(name) else {
                return Err(refused("the name of a directory looks like a partition, but is not one")
                    .with_hint(
                        "rename it to column=value, with a value in UTF-8 or __HIVE_DEFAULT_PARTITION__",
                    ));
            };
            if values.iter().any(|(other, _)| is_same(other, &column)) {
                return Err(refused("a directory names a partition column twice"));
            }
            values.push((column, value));
        }
        Ok(Self { directory: directory.to_owned(), values })
    }
}

/// The partition columns of all files to convert.
#[derive(Debug)]
pub(super) struct Partitions {
    all: Vec<Partition>,
    /// The partition columns of the first file.
    columns: Vec<String>,
}

/// The values of the partition columns as the log spells them, in the order of the columns.
pub(super) type LogValues = Vec<Vec<Option<String>>>;

impl Partitions {
    /// Collects the partitions `all` of the `files`, and checks that they all have the same columns. The first file
    /// determines the order of the columns.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if two files have different partition columns, or spell the same column differently.
    pub(super) fn new(all: Vec<Partition>, files: &[FoundFile]) -> Result<Self> {
        let names = |partition: &Partition| -> Vec<String> {
            partition.values.iter().map(|(column, _)| column.clone()).collect()
        };
        let first = files.first().and_then(|file| all.get(file.partition));
        let columns = first.map(names).unwrap_or_default();
        let mut sorted = columns.clone();
        sorted.sort_unstable();
        let other_columns = |partition: &&Partition| {
            let mut others = names(partition);
            others.sort_unstable();
            others != sorted
        };
        // Files are found in no particular order, but the error should always name the same file.
        let differs = all.iter().filter(other_columns).min_by_key(|partition| &partition.directory);
        if let (Some(first), Some(other)) = (first, differs) {
            return Err(Error::invalid_argument(format!(
                "files have different partition columns: {} in '{}', and {} in '{}'",
                listed(&columns),
                first.directory,
                listed(&names(other)),
                other.directory
            ))
            .with_hint("convert each layout as a table of its own, or move the files"));
        }
        Ok(Self { all, columns })
    }

    /// Returns the partition columns with their types, and the values of each partition. If `given` is `None`, the
    /// types are inferred.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the given columns differ from the columns of the files, and for values that do
    /// not have the type of their column.
    pub(super) fn typed(
        self,
        given: Option<&StructType>,
        time_zone: &str,
    ) -> Result<(StructType, LogValues)> {
        let columns = match given {
            Some(given) => self.given(given)?,
            None => {
                let columns = self
                    .columns
                    .iter()
                    .map(|column| StructField::new(column, inferred(self.values_of(column)), true));
                StructType::try_new(columns.collect())?
            }
        };
        let is_timestamp = |field: &StructField| field.data_type == PrimitiveType::Timestamp.into();
        let zone = ZoneClock::named(time_zone);
        if zone.is_none() && columns.fields().iter().any(is_timestamp) {
            return Err(Error::invalid_argument(format!("the time zone '{time_zone}' is unknown"))
                .with_hint("use the name of a region, such as Europe/Berlin, or an offset, such as +02:00"));
        }
        let mut all = vec![Vec::with_capacity(columns.fields().len()); self.all.len()];
        for field in columns.fields() {
            let Some(primitive) = field.data_type.as_primitive() else { continue };
            let mut wrong: Vec<(&str, &str)> = Vec::new();
            for ((partition, text), values) in self.all.iter().zip(self.values_of(&field.name)).zip(&mut all)
            {
                match text.map(|text| in_log(&field.name, text, primitive, zone)) {
                    None => values.push(None),
                    Some(Ok(value)) => values.push(value),
                    Some(Err(_)) => wrong.push((text.unwrap_or_default(), &partition.directory)),
                }
            }
            wrong.sort_unstable_by_key(|(_, directory)| *directory);
            if let Some((text, _)) = wrong.first() {
                return Err(Error::invalid_argument(format!(
                    "the partition value '{text}' is not of type {primitive}, the type of the column '{}': {}",
                    field.name,
                    named(wrong.iter().map(|(_, directory)| *directory))
                ))
                .with_hint("give the column another type, such as string, or rename the directories"));
            }
        }
        Ok((columns, all))
    }

    /// Returns the given columns if they match the columns of the files.
    fn given(&self, given: &StructType) -> Result<StructType> {
        let is_missing =
            |field: &&StructField| !self.columns.iter().any(|column| is_same(column, &field.name));
        let missing = given.fields().iter().find(is_missing);
        let unknown = self.columns.iter().find(|column| given.field(column).is_none());
        let directories = || {
            let mut all: Vec<&str> = self.all.iter().map(|partition| partition.directory.as_str()).collect();
            all.sort_unstable();
            named(all)
        };
        let refused = match (missing, unknown) {
            (None, None) => {
                let fields = given.fields().iter();
                return StructType::try_new(
                    fields.map(|field| StructField { nullable: true, ..field.clone() }).collect(),
                );
            }
            (Some(missing), _) => {
                format!(
                    "the partition column '{}' is not in the paths of the files: {}",
                    missing.name,
                    directories()
                )
            }
            (None, Some(unknown)) => {
                format!(
                    "the paths of the files have a partition column that is not given, '{unknown}': {}",
                    directories()
                )
            }
        };
        Err(Error::invalid_argument(refused).with_hint(match self.columns.is_empty() {
            true => "the directories have no names of the form column=value: leave the partition columns out",
            false => {
                "pass the columns that the directories name, with their types, or pass none to have them inferred"
            }
        }))
    }

    /// Returns the values of a column, one for each partition.
    fn values_of<'a>(&'a self, column: &'a str) -> impl Iterator<Item = Option<&'a str>> {
        self.all.iter().map(move |partition| {
            let found = partition.values.iter().find(|(name, _)| is_same(name, column));
            found.and_then(|(_, value)| value.as_deref())
        })
    }
}

/// Parses a value, and returns it as the log spells it.
fn in_log(
    column: &str,
    text: &str,
    primitive: &PrimitiveType,
    zone: Option<ZoneClock>,
) -> Result<Option<String>> {
    if let (PrimitiveType::Timestamp, Some((local, Offset::None))) = (primitive, parse_exact_timestamp(text))
    {
        let instant = zone.and_then(|zone| zone.instant(local));
        let instant = instant.ok_or_else(|| Error::invalid_argument("the time is out of range"))?;
        let array = TimestampMicrosecondArray::from(vec![instant]).with_timezone("UTC");
        return to_log_string(&(Arc::new(array) as ArrayRef), 0);
    }
    let mut builder = PartitionColumnBuilder::new(column, primitive);
    builder.append(Some(text))?;
    to_log_string(&builder.finish(), 0)
}

/// Compares names ignoring case, as Spark does.
fn is_same(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

fn listed(columns: &[String]) -> String {
    match columns {
        [] => "none".to_owned(),
        columns => columns.join(", "),
    }
}
