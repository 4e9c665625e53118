//! How long a plan takes: `cargo run --release --example plan -- <table> <predicate> [rounds]`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it is what a command does")]

use std::time::Instant;

use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::scan::{FileListing, ListColumn};
use deltalog::{Snapshot, Storage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, table, sql, rest @ ..] = arguments.as_slice() else {
        return Err("usage: plan <table> <predicate> [rounds]".into());
    };
    let rounds = rest.first().map_or(Ok(5), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let start = Instant::now();
        let snapshot = Snapshot::open(&Storage::open(table, [])?, None)?;
        let opened = start.elapsed();
        let predicate = parse(sql, "UTC", ParseMode::Strict)?;
        let columns = [ListColumn::Path, ListColumn::Size, ListColumn::PartitionValues];
        let mut list = FileListing::new(&snapshot).columns(columns).predicate(&predicate)?.read()?;
        let mut kept = 0;
        for batch in list.by_ref() {
            kept += batch?.num_rows();
        }
        let planned = start.elapsed();
        println!("open {opened:.1?}, with the plan {planned:.1?}: {kept} of {} files", list.seen());
    }
    Ok(())
}
