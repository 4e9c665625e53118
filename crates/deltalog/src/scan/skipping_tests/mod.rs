//! Compares file skipping with reading everything, for tens of thousands of random pairs of a table and a predicate. A
//! file that has a row for which the predicate is true must not be skipped, and the exact filter must give the same
//! result for each row as an independent, naive implementation (protocol, "Per-file Statistics").
//!
//! - The tables contain NULLs, NaN, both zeros, nested columns, truncated strings, timestamps truncated to the
//!   millisecond, offsets truncated to the minute, wide bounds, and statistics that are missing, partial, truncated
//!   or nonsensical. Half of the statistics claim to be computed by this crate; these have no maximum if there is a
//!   NaN. Partition values are strings.
//! - The predicates are SQL texts, which are parsed, bound and used for pruning like the predicates of users.

mod condition;
mod random;
mod table;

use arrow::array::*;
use chrono_tz::Tz;

use super::partitions::PartitionColumns;
use super::pruner::Pruner;
use crate::expression::predicate::{BoundPredicate, ColumnPath, ParseMode, filter_mask, parse, prune};
use crate::log::replay::apply;
use crate::protocol::{ColumnMappingMode, MappedSchema, StructType};
use crate::values::stats::{StatsBounds, decode_stats, leaf_columns, normalize_stats};
use condition::{Condition, condition};
use random::Random;
use table::{Column, File, PARTITION_COLUMNS, Row, actions, batch, columns, files, schema};

const TABLES: u64 = 2_500;
const PREDICATES: usize = 20;
const ZONES: [Tz; 4] = [Tz::UTC, Tz::Europe__Berlin, Tz::America__St_Johns, Tz::Asia__Kolkata];

struct Table {
    columns: Vec<Column>,
    files: Vec<File>,
    schema: MappedSchema,
    partitions: PartitionColumns,
    actions: RecordBatch,
    rows: RecordBatch,
}

impl Table {
    fn new(random: &mut Random) -> Self {
        let columns = columns();
        let files = files(random, &columns);
        let all: Vec<&Row> = files.iter().flat_map(|file| &file.rows).collect();
        let (rows, actions) = (batch(&columns, &all), actions(&files));
        let schema =
            MappedSchema::new(StructType::from_arrow(&schema(&columns)).unwrap(), ColumnMappingMode::None)
                .unwrap();
        let partitions = PartitionColumns::new(&schema, &["p".into(), "q".into()]).unwrap();
        Self { schema, partitions, columns, files, actions, rows }
    }

    /// Returns the statistics as a struct, as checkpoints store them.
    fn parsed(&self) -> StatsBounds {
        let leaves: Vec<ColumnPath> = leaf_columns(self.schema.arrow())
            .into_iter()
            .map(|(path, _)| path)
            .skip(PARTITION_COLUMNS)
            .collect();
        let stats =
            decode_stats(self.files.iter().map(|file| file.stats.as_deref()), self.schema.arrow(), &leaves)
                .unwrap();
        let stats = normalize_stats(&stats, self.schema.arrow(), &leaves).unwrap();
        let map = self.actions.column_by_name("partitionValues").unwrap().as_map();
        StatsBounds::new(stats, Some(self.partitions.parse(map).unwrap())).unwrap()
    }
}

impl Table {
    /// Prunes the files by statistics in JSON and by statistics in structs, and checks that a file is not skipped if it
    /// has a row for which the condition is true. Returns the number of skipped files.
    fn check(
        &self,
        bound: &BoundPredicate,
        condition: &Condition,
        zone: Tz,
        parsed: &StatsBounds,
        context: &str,
    ) -> usize {
        let by_struct = prune(bound, parsed).unwrap();
        let filters = Pruner::new(bound.clone(), &self.schema, &self.partitions).unwrap().filters();
        let kept = apply(&filters, self.actions.clone()).unwrap();
        let kept: Vec<usize> = kept
            .column_by_name("path")
            .unwrap()
            .as_string::<i32>()
            .iter()
            .map(|p| p.unwrap().parse().unwrap())
            .collect();
        for (at, file) in self.files.iter().enumerate() {
            // A condition with an ambiguous result counts as possibly true.
            let matching =
                file.rows.iter().find(|row| condition.of(row, zone).unwrap_or(Some(true)) == Some(true));
            if let Some(row) = matching {
                let which = format!(
                    "{context}\n  misses {row:?}\n  in a file of {:?}, {:?}",
                    file.partition, file.stats
                );
                assert!(kept.contains(&at), "{which}");
                assert!(by_struct.value(at), "by the struct, {which}");
            }
        }
        self.files.len() - kept.len()
    }
}

/// How many comparisons were made, and how many files were skipped.
#[derive(Debug, Default)]
struct Counts {
    pairs: usize,
    skipped: usize,
    skipped_by_values: usize,
    compared: usize,
}

impl Counts {
    fn add(&mut self, seed: u64) {
        let random = &mut Random(seed);
        let table = Table::new(random);
        let parsed = table.parsed();
        for _ in 0..PREDICATES {
            let zone = random.one(&ZONES);
            let depth = random.below(4);
            let condition = condition(random, &table.columns, zone, depth);
            let sql = condition.sql(&table.columns, zone);
            let bound =
                parse(&sql, zone.name(), ParseMode::Pruning).unwrap().bind_for_pruning(table.schema.arrow());
            assert_eq!(
                bound.has_unknown(),
                condition.is_unknown() || condition.is_computed(),
                "{sql} is understood differently than expected"
            );

            self.skipped += table.check(&bound, &condition, zone, &parsed, &format!("table {seed}: {sql}"));
            self.pairs += 1;

            let Ok(exact) = parse(&sql, zone.name(), ParseMode::Strict)
                .and_then(|predicate| predicate.bind(table.schema.arrow()))
            else {
                assert!(condition.is_unknown(), "{sql}");
                continue;
            };
            if condition.is_computed() {
                let context = format!("computed, table {seed}: {sql}");
                self.skipped_by_values += table.check(&exact, &condition, zone, &parsed, &context);
            }
            let mask = filter_mask(&exact, &table.rows).unwrap();
            for (row, values) in table.files.iter().flat_map(|file| &file.rows).enumerate() {
                if let Ok(expected) = condition.of(values, zone) {
                    assert_eq!(mask.is_valid(row).then(|| mask.value(row)), expected, "{sql} of {values:?}");
                    self.compared += 1;
                }
            }
        }
    }
}

/// Runs on all cores, because it is by far the longest test of this crate.
#[test]
fn skipped_files_have_no_matching_row() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let count = |first: u64| {
        let mut counts = Counts::default();
        (first..TABLES).step_by(threads).for_each(|seed| counts.add(seed));
        counts
    };
    let counts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads as u64).map(|first| scope.spawn(move || count(first))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).fold(Counts::default(), |sum, counts| {
            Counts {
                pairs: sum.pairs + counts.pairs,
                skipped: sum.skipped + counts.skipped,
                skipped_by_values: sum.skipped_by_values + counts.skipped_by_values,
                compared: sum.compared + counts.compared,
            }
        })
    });
    // The test would prove nothing if no file were skipped.
    let Counts { pairs, skipped, skipped_by_values, compared } = counts;
    assert!(
        pairs >= 50_000 && skipped > 50_000 && skipped_by_values > 5_000 && compared > 100_000,
        "{counts:?}"
    );
}
