//! CONVERT: plans and commits the conversion of a directory of Parquet files to a table.

use deltalog::engine::commit::Operation;
use deltalog::engine::protocol::StructType;
use deltalog::{Conversion, ConvertRequest, ConvertSource, plan_conversion as core_plan};
use pyo3::prelude::*;

use crate::call::{call, call_that_commits};
use crate::commit_arguments::CommitArguments;
use crate::create::parse_mode;
use crate::error::IntoPython;
use crate::store_options::{StoreOptions, open_storage};
use crate::stream::{ArrowStream, reader_of};
use crate::table_options::TableOptions;
use crate::upkeep;

/// The arguments of a conversion: `deltalog.convert.ConvertArguments` in Python.
#[derive(FromPyObject)]
pub(crate) struct ConvertArguments<'py> {
    mode: String,
    options: TableOptions,
    /// The schema of the partition columns.
    partition_by: Option<String>,
    time_zone: String,
    statistics: bool,
    /// The schema of the other columns.
    columns: Option<String>,
    /// An Arrow stream.
    files: Option<Bound<'py, PyAny>>,
}

/// The plan of a conversion.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct ConversionPlan(Conversion);

#[pymethods]
impl ConversionPlan {
    #[getter]
    fn num_files(&self) -> u64 {
        self.0.files()
    }

    #[getter]
    fn size_in_bytes(&self) -> u64 {
        self.0.bytes()
    }

    #[getter]
    fn schema_json(&self) -> String {
        self.0.schema().to_json()
    }

    #[getter]
    fn partition_columns(&self) -> Vec<String> {
        self.0.partition_columns().to_vec()
    }

    fn paths(&self) -> PyResult<Vec<String>> {
        self.0.paths().into_python()
    }

    fn files(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        let batches = self.0.batches().into_python()?;
        let schema = batches
            .first()
            .map(|batch| batch.schema())
            .unwrap_or_else(|| arrow::datatypes::Schema::empty().into());
        ArrowStream::start(py, schema, batches.into_iter().map(Ok))
    }

    /// Commits the plan, and returns the version. Returns None if a table has been created since, and the mode is
    /// `ignore`.
    fn commit(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let committed = call_that_commits(py, || self.0.commit())?;
        Ok(committed.map(|committed| committed.version))
    }
}

/// Finds the files in a directory, and reads their footers. Returns `None` if a table exists and the mode is
/// `ignore`.
#[pyfunction]
#[pyo3(signature = (uri, arguments, commit, storage_options = None))]
pub(crate) fn plan_conversion(
    py: Python<'_>,
    uri: &str,
    arguments: ConvertArguments<'_>,
    commit: CommitArguments,
    storage_options: Option<StoreOptions>,
) -> PyResult<Option<ConversionPlan>> {
    let source = match arguments.files {
        Some(files) => ConvertSource::Files(reader_of(&files)?),
        None => ConvertSource::Directory,
    };
    let ConvertArguments { mode, options, partition_by, time_zone, statistics, columns, .. } = arguments;
    let plan = call(py, || {
        let mut request = ConvertRequest::new(source).defined_as(options.definition(StructType::default()));
        request.mode = parse_mode(&mode)?;
        request.partition_by = partition_by.as_deref().map(StructType::from_json).transpose()?;
        request.columns = columns.as_deref().map(StructType::from_json).transpose()?;
        request.time_zone = time_zone;
        request.statistics = statistics;
        request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
        core_plan(&open_storage(uri, storage_options)?, request, &upkeep::environment())
    })?;
    Ok(plan.map(ConversionPlan))
}
