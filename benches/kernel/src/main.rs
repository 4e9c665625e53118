//! What deltalog is measured against: the `delta_kernel` crate with its default engine, one measurement a
//! process.
//!
//! `bench-kernel TABLE [lean]` opens the newest version of a table, takes `scan_metadata` to its end without
//! keeping it, and prints one line of JSON: the laps (seconds, and the most memory held until then), the
//! version, the number of files, the sum of their sizes.
//!
//! - Path, size and partition values of each file are looked at in the Arrow columns that the engine gives:
//!   no row is copied out.
//! - `lean` asks for no statistics and no row transforms, which a caller who only lists can do without;
//!   without it everything is as the crate has it.

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

/// What was seen of the files; all of it depends on all values, so that no work can be left out.
#[derive(Default)]
struct Seen {
    files: u64,
    bytes: i64,
    path_bytes: u64,
    partition_values: u64,
}

impl Seen {
    /// Takes the rows that are selected; a selection that is too short leaves the rest selected, as the crate
    /// documents.
    fn take(&mut self, batch: &RecordBatch, selected: &[bool]) -> Outcome<()> {
        let paths = column(batch, "path")?.as_string_opt::<i32>().ok_or("path is no text")?;
        let sizes = column(batch, "size")?.as_primitive_opt::<Int64Type>().ok_or("size is no long")?;
        let constants: &StructArray =
            column(batch, "fileConstantValues")?.as_struct_opt().ok_or("fileConstantValues is no struct")?;
        let partitions: &MapArray = constants
            .column_by_name("partitionValues")
            .and_then(|values| values.as_map_opt())
            .ok_or("partitionValues is no map")?;
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

/// The most memory that this process has held at once, from what Linux says of it.
fn peak_bytes() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kibibytes * 1024)
}
