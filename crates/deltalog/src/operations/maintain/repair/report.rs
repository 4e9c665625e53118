//! The result of a check as Arrow data.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Builder, MapBuilder, MapFieldNames, RecordBatch, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::FileCheck;
use super::problem::{FileProblem, Finding};
use crate::error::{Error, Result};
use crate::log::replay::string_map;
use crate::operations::rewrite::ListedFile;
use crate::protocol::PartitionValues;
use crate::snapshot::Snapshot;

/// Describes the problem of a file that neither the newest version nor its tombstones refer to.
const UNREFERENCED: &str =
    "the newest version neither contains it nor records its removal: VACUUM deletes it when it is old enough";

/// A file of the log that has at least one problem.
#[derive(Debug)]
pub(super) struct FaultyFile {
    pub(super) file: ListedFile,
    pub(super) findings: Vec<Finding>,
}

impl FaultyFile {
    pub(super) fn has(&self, problem: FileProblem) -> bool {
        self.findings.iter().any(|finding| finding.problem == problem)
    }

    /// Returns the number of rows in the file that are not deleted, if the log states it.
    pub(super) fn live_rows(&self) -> Option<u64> {
        self.file.live_rows()
    }
}

/// Returns the schema of the report.
pub(super) fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("problem", DataType::Utf8, false),
        Field::new("detail", DataType::Utf8, false),
        Field::new("partition_values", string_map(), true),
        Field::new("size", DataType::Int64, false),
        Field::new("modification_time", time, false),
        Field::new("num_rows", DataType::Int64, true),
    ]))
}

/// Returns the report as one batch: first the files of the log, in the log's order, followed by unreferenced files,
/// ordered by path.
///
/// # Errors
/// Returns `CorruptData` if the report is too large for an Arrow array.
pub(super) fn batch(check: &FileCheck) -> Result<RecordBatch> {
    let (mut paths, mut problems, mut details) =
        (StringBuilder::new(), StringBuilder::new(), StringBuilder::new());
    let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    let mut partitions = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    let (mut sizes, mut times, mut rows) =
        (Int64Builder::new(), TimestampMillisecondBuilder::new().with_timezone("UTC"), Int64Builder::new());
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let failed =
        |error| Error::corrupt_data("the report is larger than an Arrow array can be").with_source(error);
    for faulty in &check.faulty {
        for finding in &faulty.findings {
            paths.append_value(faulty.file.file.path.to_string());
            problems.append_value(finding.problem.name());
            details.append_value(&finding.detail);
            for (name, value) in values_of(&check.snapshot, &faulty.file.add.partition_values) {
                partitions.keys().append_value(name);
                partitions.values().append_option(value);
            }
            partitions.append(true).map_err(failed)?;
            sizes.append_value(faulty.file.add.size);
            times.append_value(faulty.file.add.modification_time);
            rows.append_option(faulty.live_rows().map(number));
        }
    }
    for file in &check.stored.unreferenced {
        paths.append_value(&file.name);
        problems.append_value(FileProblem::UnreferencedFile.name());
        details.append_value(UNREFERENCED);
        partitions.append(false).map_err(failed)?;
        sizes.append_value(number(file.size));
        times.append_value(file.modified_ms);
        rows.append_null();
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(paths.finish()),
        Arc::new(problems.finish()),
        Arc::new(details.finish()),
        Arc::new(partitions.finish()),
        Arc::new(sizes.finish()),
        Arc::new(times.finish()),
        Arc::new(rows.finish()),
    ];
    RecordBatch::try_new(schema(), columns).map_err(failed)
}

/// Returns the partition values of a file as the log spells them, by the logical names of the columns.
fn values_of<'a>(
    snapshot: &'a Snapshot,
    values: &'a PartitionValues,
) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let columns = snapshot.metadata().partition_columns.iter();
    columns.map(|name| {
        let physical = snapshot.mapped_schema().physical_name(name).unwrap_or(name);
        (name.as_str(), values.get(physical).and_then(|value| value.as_deref()))
    })
}
