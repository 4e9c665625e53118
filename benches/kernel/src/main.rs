//! A peer of deltalog in benchmarks: the `delta_kernel` crate with its default engine. Each process is one measurement.
//!
//! `bench-kernel TABLE [lean]` opens the newest version of a table, iterates over all of `scan_metadata` without
//! keeping it, and prints one line of JSON: the laps (seconds, and peak memory so far), the version, the number of
//! files, and the sum of their sizes.
//!
//! - Path, size and partition values of each file are read from the engine's Arrow columns; no row is copied.
//! - `lean` switches off statistics and row transforms, which a caller that only lists does not need. Without it the
//!   crate's defaults apply.

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::Instant;

use delta_kernel::arrow::array::{Array, AsArray, MapArray, RecordBatch, StructArray};
use delta_kernel::arrow::datatypes::Int64Type;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::scan::StatsOptions;
use delta_kernel::snapshot::Snapshot;
use delta_kernel::try_parse_uri;
use delta_kernel_default_engine::DefaultEngineBuilder;
use delta_kernel_default_engine::storage::store_from_url;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Sums over the files. They depend on every value, so that no work can be optimized away.
#[derive(Default)]
struct Seen {
    files: u64,
    bytes: i64,
    path_bytes: u64,
    partition_values: u64,
}

impl Seen {
    /// Adds the selected rows. Rows beyond the end of the selection are selected, as the crate documents.
    fn take(&mut self, batch: &RecordBatch, selected: &[bool]) -> Outcome<()> {
        let paths = column(batch, "path")?.as_string_opt::<i32>().ok_or("path is not a string column")?;
        let sizes =
            column(batch, "size")?.as_primitive_opt::<Int64Type>().ok_or("size is not a long column")?;
        let constants: &StructArray = column(batch, "fileConstantValues")?
            .as_struct_opt()
            .ok_or("fileConstantValues is not a struct")?;
        let partitions: &MapArray = constants
            .column_by_name("partitionValues")
            .and_then(|values| values.as_map_opt())
            .ok_or("partitionValues is not a map")?;
        for row in 0..batch.num_rows() {
            if !selected.get(row).copied().unwrap_or(true) || paths.is_null(row) {
                continue;
            }
            self.files += 1;
            self.bytes += sizes.value(row);
            self.path_bytes += paths.value(row).len() as u64;
            self.partition_values += partitions.value_length(row) as u64;
        }
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (table, lean) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [table] => (table, false),
        [table, "lean"] => (table, true),
        _ => return Err("usage: bench-kernel TABLE [lean]".into()),
    };
    println!("{}", measure(table, lean)?);
    Ok(())
}

fn measure(table: &str, lean: bool) -> Outcome<Value> {
    let start = Instant::now();
    let url = try_parse_uri(table)?;
    let engine = DefaultEngineBuilder::new(store_from_url(&url)?).build();
    let snapshot = Snapshot::builder_for(&url).build(&engine)?;
    let columns = snapshot.schema().num_fields();
    let open = lap(start)?;

    let builder = Arc::clone(&snapshot).scan_builder();
    let builder =
        if lean { builder.with_stats(StatsOptions::none()).without_row_transforms() } else { builder };
    let mut seen = Seen::default();
    for part in builder.build()?.scan_metadata(&engine)? {
        let (data, selected) = part?.scan_files.into_parts();
        seen.take(ArrowEngineData::try_from_engine_data(data)?.record_batch(), &selected)?;
    }
    let list = lap(start)?;

    Ok(json!({
        "laps": {"open": open, "open + list": list},
        "version": snapshot.version(),
        "columns": columns,
        "files": seen.files,
        "bytes": seen.bytes,
        "path_bytes": seen.path_bytes,
        "partition_values": seen.partition_values,
    }))
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Outcome<&'a dyn Array> {
    Ok(batch.column_by_name(name).ok_or_else(|| format!("no column {name} in the scan's rows"))?.as_ref())
}

fn lap(start: Instant) -> Outcome<Value> {
    let seconds = start.elapsed().as_secs_f64();
    Ok(json!({"seconds": seconds, "peak_bytes": peak_bytes()?}))
}

/// Returns the peak memory of this process, as reported by Linux.
fn peak_bytes() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kibibytes * 1024)
}
