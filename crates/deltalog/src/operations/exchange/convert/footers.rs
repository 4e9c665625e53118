//! Reads the footers of the files to convert: their schemas and statistics. (Protocol: "Delta Data Type to Parquet
//! Type Mappings", "Per-file Statistics".)
//!
//! - Footers are read in parallel, a few thousand files at a time. Only the `add` action of each file is kept, so
//!   that memory does not depend on the sizes of the footers.
//! - Files with the same schema share the schema's converted form.
//! - Statistics are bounds from the footers, as for files that engines report ([`crate::values::stats`]). No pages
//!   are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType as ArrowType, Fields, Schema, TimeUnit};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::Type;

use super::FoundFile;
use super::merged::{Clash, merge, nullable};
use super::partitions::LogValues;
use crate::error::{Error, Result};
use crate::log::replay::batches_of_adds;
use crate::protocol::{Add, StructType, path};
use crate::runtime::parallel;
use crate::runtime::progress::Progress;
use crate::storage::Storage;
use crate::values::int96::fields_with_micros;
use crate::values::stats::{CollectOptions, collect_stats};
use crate::write::{FOOTER_THREADS, read_footer, selected_columns};

/// The number of files whose `add` actions are held as Rust structs at the same time.
const CHUNK: usize = 4096;

/// The number of schemas that are remembered to recognize files with the same schema.
const SCHEMAS: usize = 64;

/// The settings for reading footers.
pub(super) struct Footers<'a> {
    pub(super) storage: &'a Storage,
    /// The properties of the table, which determine the columns that have statistics.
    pub(super) configuration: &'a BTreeMap<String, String>,
    pub(super) partition_by: &'a StructType,
    /// Whether to keep statistics in addition to the number of rows.
    pub(super) statistics: bool,
}

/// The columns that several files with the same schema share.
struct Shared {
    /// The schema in the files.
    parquet: Type,
    /// The path of one of the files that share the columns, for error messages.
    path: String,
    columns: StructType,
    /// The schema with Arrow types.
    arrow: Schema,
    options: CollectOptions,
}

impl Footers<'_> {
    /// Returns the merged columns of the files, the names of the columns that all files have, and the `add` actions of
    /// the files.
    ///
    /// # Errors
    /// Returns the same errors as [`super::plan_conversion`].
    pub(super) fn read(
        &self,
        files: &[FoundFile],
        values: &LogValues,
    ) -> Result<(StructType, BTreeSet<String>, Vec<RecordBatch>)> {
        let known: Mutex<Vec<Arc<Shared>>> = Mutex::default();
        let threads =
            self.storage.readers(files.len()).max(parallel::exactly(FOOTER_THREADS).min(files.len()));
        let (mut adds, mut merged) = (Vec::new(), Merged::default());
        let progress = Progress::new("CONVERT", self.storage.url(), files.len() as u64, "footers");
        for chunk in files.chunks(CHUNK) {
            let read = parallel::each(chunk, threads, |file| {
                let read = self.file(file, values, &known).map_err(|error| error.at_path(&file.path))?;
                progress.add(1);
                Ok::<_, Error>(read)
            })?;
            let mut actions = Vec::with_capacity(read.len());
            for (shared, add) in read {
                merged.add(&shared)?;
                actions.push(add);
            }
            adds.extend(batches_of_adds(&actions)?);
        }
        Ok((merged.columns.unwrap_or_default(), merged.common, adds))
    }

    fn file(
        &self,
        file: &FoundFile,
        values: &LogValues,
        known: &Mutex<Vec<Arc<Shared>>>,
    ) -> Result<(Arc<Shared>, Add)> {
        let reader = self.storage.open_file(&file.path)?;
        if reader.size() != file.size {
            return Err(Error::corrupt_data(format!(
                "the file has {} bytes, not {} as expected",
                reader.size(),
                file.size
            ))
            .with_hint("convert the directory while nothing writes to it"));
        }
        let footer = read_footer(&reader).map_err(|error| {
            error.with_hint(
                "delete it, or move it elsewhere: all files of the directory become part of the table",
            )
        })?;
        let shared = self.shared(&file.path, &footer, known)?;
        let columns = self.partition_by.fields().iter().map(|field| field.name.clone());
        let partition = values.get(file.partition).into_iter().flatten().cloned();
        let add = Add {
            path: path::encode(&file.path),
            partition_values: columns.zip(partition).collect(),
            size: i64::try_from(file.size).unwrap_or(i64::MAX),
            modification_time: file.modified_ms,
            data_change: true,
            stats: Some(match self.statistics {
                true => collect_stats(&footer, &shared.arrow, &shared.options)?,
                false => format!("{{\"numRecords\":{}}}", footer.file_metadata().num_rows()),
            }),
            ..Add::default()
        };
        Ok((shared, add))
    }

    /// Returns the columns of a file. Files with the same schema share one instance.
    fn shared(
        &self,
        path: &str,
        footer: &ParquetMetaData,
        known: &Mutex<Vec<Arc<Shared>>>,
    ) -> Result<Arc<Shared>> {
        let parquet = footer.file_metadata().schema();
        let find = |known: &[Arc<Shared>]| known.iter().find(|shared| shared.parquet == *parquet).cloned();
        if let Some(shared) = find(&known.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(shared);
        }
        let columns = columns_of(footer)?;
        let both = columns.fields().iter().find(|field| self.partition_by.field(&field.name).is_some());
        if let Some(both) = both {
            return Err(Error::schema_mismatch(format!(
                "the partition column '{}' is also a column of the file",
                both.name
            ))
            .with_hint(
                "write the files without it, or convert them without partition columns from a list of files",
            ));
        }
        let arrow = columns.to_arrow()?;
        let indexed = selected_columns(self.configuration, &arrow).map_err(|error| {
            // The schema is not in a log yet, so an error in it does not mean that the log is corrupt.
            Error::invalid_argument(error.to_string())
        })?;
        let options = CollectOptions { columns: indexed, is_own: false };
        let shared =
            Arc::new(Shared { parquet: parquet.clone(), path: path.to_owned(), columns, arrow, options });
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        match find(&known) {
            Some(shared) => Ok(shared),
            None => {
                if known.len() < SCHEMAS {
                    known.push(Arc::clone(&shared));
                }
                Ok(shared)
            }
        }
    }
}

/// The merged columns of all files so far.
#[derive(Default)]
struct Merged {
    columns: Option<StructType>,
    /// The names of the columns that all files have.
    common: BTreeSet<String>,
    /// Some of the schemas that were merged, so that an error can name one of their files.
    schemas: Vec<Arc<Shared>>,
}

impl Merged {
    fn add(&mut self, shared: &Arc<Shared>) -> Result<()> {
        if self.schemas.iter().any(|known| Arc::ptr_eq(known, shared)) {
            return Ok(());
        }
        let names: BTreeSet<String> =
            shared.columns.fields().iter().map(|field| field.name.clone()).collect();
        match &self.columns {
            None => self.common = names,
            Some(_) => self.common.retain(|name| names.contains(name)),
        }
        let columns = match &self.columns {
            None => shared.columns.clone(),
            Some(columns) => merge(columns, &shared.columns).map_err(|clash| self.refusal(&clash, shared))?,
        };
        self.columns = Some(columns);
        if self.schemas.len() < SCHEMAS {
            self.schemas.push(Arc::clone(shared));
        }
        Ok(())
    }

    fn refusal(&self, clash: &Clash, shared: &Shared) -> Error {
        // The conflicting type in the merged schema may come from yet another file.
        let alone = self.schemas.iter().find_map(|known| {
            let other = merge(&known.columns, &shared.columns).err()?;
            (other.column == clash.column).then(|| (known.path.as_str(), other))
        });
        let (other, clash) = match &alone {
            Some((path, alone)) => (*path, alone),
            None => ("other files", clash),
        };
        let Clash { column, found: [before, now] } = clash;
        Error::schema_mismatch(format!(
            "the files have different schemas: the column '{column}' is {before} in {other}, and {now} in {}",
            shared.path
        ))
        .with_hint("write one of the files again with the column of the other, or convert them as two tables")
    }
}

/// Returns the columns of a file, with the types that a table would have.
///
/// # Errors
/// Returns `Unsupported` for a type that a column of a table cannot have.
fn columns_of(footer: &ParquetMetaData) -> Result<StructType> {
    let descriptor = footer.file_metadata().schema_descr();
    // The Arrow schema that the writer stored is ignored, because other readers ignore it.
    let arrow = parquet_to_arrow_schema(descriptor, None)
        .map_err(|error| Error::corrupt_data("the file's schema cannot be read").with_source(error))?;
    let fields = fields_with_micros(arrow.fields(), descriptor, Some("UTC"));
    if let Some(name) = nanoseconds(&fields) {
        return Err(Error::unsupported(format!(
            "the column '{name}' has timestamps in nanoseconds, which a table cannot have"
        ))
        .with_hint("write the files with microseconds; with pyarrow: coerce_timestamps='us'"));
    }
    nullable(&StructType::types_from_arrow(&Schema::new(fields))?)
}

/// Returns the name of a column that contains timestamps in nanoseconds, at any depth.
fn nanoseconds(fields: &Fields) -> Option<&str> {
    fn has(data_type: &ArrowType) -> bool {
        match data_type {
            ArrowType::Timestamp(unit, _) => *unit == TimeUnit::Nanosecond,
            ArrowType::Struct(fields) => fields.iter().any(|field| has(field.data_type())),
            ArrowType::List(field) | ArrowType::Map(field, _) => has(field.data_type()),
            _ => false,
        }
    }
    fields.iter().find(|field| has(field.data_type())).map(|field| field.name().as_str())
}
