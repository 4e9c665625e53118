//! The module `deltalog._internal`: a thin layer over the Rust crate.
//!
//! Each function converts its arguments, releases the interpreter lock, calls the crate, and converts the result or
//! the error.
//!
//! | file | what it binds |
//! | --- | --- |
//! | `alter` | `TableChange`, `alter_table`, `drop_feature`: changes of a table's definition |
//! | `analyze` | statistics of files: `recompute_statistics` |
//! | `answers` | aggregates that are computed from the log, as Python values |
//! | `argument` | arguments of classes that users call directly |
//! | `auto_compaction` | a Spark session's settings for compacting small files after a write |
//! | `batch` | the batches of a stream |
//! | `call` | releases the interpreter lock, and converts errors |
//! | `change_range` | the argument that names a range of changes |
//! | `clone` | CLONE |
//! | `commit_arguments` | the information that a writer adds to its commit |
//! | `convert` | `ConversionPlan`: directories of Parquet files that become tables |
//! | `create` | `create_table`: creates tables by their definition, with or without rows |
//! | `decoder` | reads rows from the bytes of a file |
//! | `delimiter` | the character between the values of a CSV record |
//! | `distributed` | `DistributedWrite`, `WriteTask`, `Fragment`: writes by several processes |
//! | `encoder` | writes rows as the bytes of a file |
//! | `ending` | keeps other threads out while the interpreter shuts down |
//! | `error` | errors of the crate as the classes of `deltalog.errors` |
//! | `expression` | evaluates SQL expressions on Arrow data |
//! | `foreign` | calls of other libraries' Python code, which may detach the thread from the interpreter |
//! | `fragment` | fragments of scans for other processes |
//! | `handle` | the newest snapshot of a table, and its commits |
//! | `interpreters` | refuses to run in sub-interpreters |
//! | `interrupts` | Ctrl-C during a call |
//! | `log_store` | Python objects that decide which commits succeed |
//! | `logging` | the crate's log records, for Python's `logging` |
//! | `manifest` | manifests for other engines |
//! | `optimize` | OPTIMIZE |
//! | `panics` | raises panics as `InternalError` |
//! | `parquet_file` | reads a Parquet file that does not belong to a table |
//! | `predicate` | the predicates that users pass |
//! | `progress` | the progress of long operations, as numbers |
//! | `repair` | FSCK: `check_files`, `repair` |
//! | `restore` | RESTORE |
//! | `several` | reads rows from lists and generators of batches |
//! | `snapshot` | `Snapshot` |
//! | `spark_batch` | `SparkBatch`: the files of a batch of a stream |
//! | `spark_changes` | `SparkChanges` |
//! | `spark_clone` | `SparkClone` |
//! | `spark_optimize` | `SparkOptimize`: an OPTIMIZE whose files Spark's tasks write |
//! | `spark_plan` | `SparkPlan`: the file list, packed for the Java side of `deltalog.spark` |
//! | `spark_statement` | `SparkStatement` |
//! | `spark_write` | `SparkWrite` |
//! | `statement_tasks` | `StatementTask`, `StatementFragment`: statements that tasks in several processes carry out |
//! | `statements` | DELETE, UPDATE and MERGE |
//! | `store_options` | options and credentials of stores |
//! | `stream` | passes Arrow streams to Python, and reads them from Python |
//! | `table_options` | the options of a new table |
//! | `table_stream` | `TableStream`: the rows of a table as a sequence of batches |
//! | `upkeep` | the threads that do the work after commits |
//! | `vacuum` | `VacuumPlan`: the files that a table no longer needs |
//! | `write` | `write_stream`: writes and commits Arrow data |
//! | `write_arguments` | the options of a write |
//! | `write_batches` | writes the rows of a stream while the source produces more |
//! | `write_target` | the location of a write, and the version on which it is based |
//! | `write_token` | a write, serialized for other processes |

// The functions that Python sees are documented in the stubs, `python/deltalog/_internal`.
#![allow(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "the end of the process waits a moment for the binding's threads"
)]

mod alter;
mod analyze;
mod answers;
mod argument;
mod auto_compaction;
mod batch;
mod call;
mod change_range;
mod clone;
mod commit_arguments;
mod convert;
mod create;
mod decoder;
mod delimiter;
mod distributed;
mod encoder;
mod ending;
mod error;
mod expression;
mod foreign;
mod fragment;
mod handle;
mod interpreters;
mod interrupts;
mod log_store;
mod logging;
mod manifest;
mod optimize;
mod panics;
mod parquet_file;
mod predicate;
mod progress;
mod repair;
mod restore;
mod several;
mod snapshot;
mod spark_batch;
mod spark_changes;
mod spark_clone;
mod spark_optimize;
mod spark_plan;
mod spark_statement;
mod spark_write;
mod statement_tasks;
mod statements;
mod store_options;
mod stream;
mod table_options;
mod table_stream;
mod upkeep;
mod vacuum;
mod write;
mod write_arguments;
mod write_batches;
mod write_target;
mod write_token;

use pyo3::prelude::*;

#[pymodule]
fn _internal(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreters::check_main(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    logging::start(module)?;
    ending::start(module)?;
    upkeep::start(module)?;
    error::add_classes(module)?;
    panics::start(module)?;
    module.add_class::<commit_arguments::AlreadyApplied>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<distributed::DistributedWrite>()?;
    module.add_class::<distributed::Fragment>()?;
    module.add_class::<distributed::WriteTask>()?;
    module.add_class::<spark_batch::SparkBatch>()?;
    module.add_class::<spark_changes::SparkChanges>()?;
    module.add_class::<spark_clone::SparkClone>()?;
    module.add_class::<spark_optimize::SparkOptimize>()?;
    module.add_class::<spark_plan::SparkPlan>()?;
    module.add_class::<spark_statement::SparkStatement>()?;
    module.add_class::<spark_write::SparkWrite>()?;
    module.add_class::<statement_tasks::StatementFragment>()?;
    module.add_class::<statement_tasks::StatementTask>()?;
    module.add_class::<stream::ArrowStream>()?;
    module.add_class::<batch::ArrowBatch>()?;
    module.add_class::<encoder::Encoder>()?;
    module.add_class::<decoder::Decoder>()?;
    module.add_class::<progress::ProgressObserver>()?;
    module.add_function(wrap_pyfunction!(parquet_file::read_parquet, module)?)?;
    module.add_class::<table_stream::TableStream>()?;
    module.add_class::<alter::TableChange>()?;
    module.add_class::<convert::ConversionPlan>()?;
    module.add_class::<vacuum::VacuumPlan>()?;
    module.add_class::<handle::Recent>()?;
    module.add_class::<handle::Commits>()?;
    module.add_class::<handle::Commit>()?;
    module.add_function(wrap_pyfunction!(handle::check_store, module)?)?;
    module.add_function(wrap_pyfunction!(handle::cache_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(log_store::register_log_store, module)?)?;
    module.add_function(wrap_pyfunction!(handle::canonical_uri, module)?)?;
    module.add_function(wrap_pyfunction!(handle::table_exists, module)?)?;
    module.add_function(wrap_pyfunction!(expression::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(expression::function_names, module)?)?;
    module.add_function(wrap_pyfunction!(expression::rule_functions, module)?)?;
    module.add_function(wrap_pyfunction!(expression::expression_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(expression::default_value, module)?)?;
    module.add_function(wrap_pyfunction!(stream::arrow_stream, module)?)?;
    module.add_function(wrap_pyfunction!(stream::schema_to_arrow, module)?)?;
    module.add_function(wrap_pyfunction!(stream::schema_from_arrow, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::begin_write, module)?)?;
    module.add_function(wrap_pyfunction!(write::write_stream, module)?)?;
    module.add_function(wrap_pyfunction!(clone::clone_table, module)?)?;
    module.add_function(wrap_pyfunction!(convert::plan_conversion, module)?)?;
    module.add_function(wrap_pyfunction!(create::create_table, module)?)?;
    module.add_function(wrap_pyfunction!(alter::alter, module)?)?;
    module.add_function(wrap_pyfunction!(alter::drop_from, module)?)?;
    module.add_function(wrap_pyfunction!(manifest::generate_manifests, module)?)?;
    module.add_function(wrap_pyfunction!(optimize::optimize, module)?)?;
    module.add_function(wrap_pyfunction!(analyze::recompute_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(repair::check_files, module)?)?;
    module.add_function(wrap_pyfunction!(repair::repair, module)?)?;
    module.add_function(wrap_pyfunction!(restore::restore, module)?)?;
    module.add_function(wrap_pyfunction!(statements::delete_rows, module)?)?;
    module.add_function(wrap_pyfunction!(statements::update_rows, module)?)?;
    module.add_function(wrap_pyfunction!(statements::merge_rows, module)?)?;
    module.add_function(wrap_pyfunction!(vacuum::plan_vacuum, module)?)?;
    module.add_function(wrap_pyfunction!(fragment::read_fragment, module)?)?;
    module.add_function(wrap_pyfunction!(snapshot::forget_snapshots, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::run_upkeep_in_background, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::wait_for_upkeep, module)?)?;
    Ok(())
}
