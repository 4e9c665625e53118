//! How long reading rows takes: `cargo run --release --example scan -- <table> [columns, comma between]
//! [predicate] [rounds] [views]`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it is what a command does")]

use std::time::Instant;

use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::scan::TableScan;
use deltalog::{Snapshot, Storage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let text = |at: usize| arguments.get(at).map(String::as_str).filter(|text| !text.is_empty());
    let table = text(1).ok_or("usage: scan <table> [columns, comma between] [predicate] [rounds] [views]")?;
    let rounds = text(4).map_or(Ok(5), str::parse)?;
    for _ in 0..rounds {
        let start = Instant::now();
        let snapshot = Snapshot::open(&Storage::open(table, [])?, None)?;
        let mut scan = TableScan::new(&snapshot);
        if let Some(columns) = text(2) {
            scan = scan.columns(columns.split(','));
        }
        if let Some(sql) = text(3) {
            scan = scan.predicate(parse(sql, "UTC", ParseMode::Strict)?);
        }
        if text(5) == Some("views") {
            scan = scan.view_types();
        }
        let (mut rows, mut bytes) = (0, 0);
        for batch in scan.read()? {
            let batch = batch?;
            rows += batch.num_rows();
            bytes += batch.get_array_memory_size();
        }
        println!("{rows} rows, {} MiB in {:.1?}", bytes >> 20, start.elapsed());
    }
    Ok(())
}
