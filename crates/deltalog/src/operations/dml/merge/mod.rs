//! `MERGE`: changes, deletes and inserts rows of a table, depending on the rows of a source.
//!
//! ```text
//!   source, held in memory ── keys ──► files that may have them
//!                                        │ the columns of the conditions are read, several files at once
//!                                        ▼
//!   pairs that match: the first clause whose condition is true ──► rows of the file to delete or to change
//!   rows of the file without a match: the same                 ──► rows of the file to delete or to change
//!   rows of the source without a match, after all files        ──► new rows
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `clauses` | binds the clauses to the two tables |
//! | `keys` | finds the rows of the source that have given keys |
//! | `matching` | decides what is done to the rows of one file |
//! | `pairs` | puts rows of both tables side by side |
//! | `source` | holds the rows of the source |
//! | `pruning` | derives from the keys of the source which rows of the table may have a match |
//!
//! - The source is kept in memory, and the table is read in batches. For each file, the positions of the rows to
//!   change are kept in memory.
//! - A NULL key matches nothing, unless it is compared by `<=>`.
//! - Whether several rows of the source may match the same row of the table depends on the clauses, as in the JVM
//!   implementation. Every pair for which the condition of the MERGE is true counts, whether a clause applies to the
//!   pair or not:
//!
//!   | clauses for matched rows | other clauses | several matches |
//!   | --- | --- | --- |
//!   | one DELETE without a condition | any | the row is deleted, once |
//!   | none | NOT MATCHED only | allowed: matches only determine which rows are not inserted |
//!   | none | NOT MATCHED BY SOURCE, and others | refused |
//!   | any other, such as DELETE with a condition | any | refused |
//! - If the MERGE adds columns of the source to the table, files are read and written with the schema that the table
//!   will have after the commit: [`Snapshot::seen_with`]. The transaction is still based on the version without these
//!   columns, so that a concurrent change of the metadata is a conflict.
//! - A matched row that is not changed still counts as read, because it determines that rows of the source are not
//!   inserted.

mod clauses;
mod keys;
mod matching;
mod pairs;
mod pruning;
mod source;

use arrow::array::RecordBatch;
use roaring::RoaringBitmap;

use self::clauses::{Bound, Clauses, When, decide};
pub use self::clauses::{Clause, ClauseAction};
use self::matching::{Fate, Matcher};
use self::pairs::Sides;
use self::pruning::pruning;
pub use self::source::MergeSource;
use super::metrics::RowCounts;
use super::row_change::{RowChange, RowChangeOutcome};
use super::run::{Request, run, take_rows};
use super::statement::{MergeClause, Statement};
use crate::error::Result;
use crate::operations::define::alter::merged;
use crate::operations::rewrite::{Candidate, RowWriter, candidates};
use crate::protocol::StructType;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;

/// A MERGE into a table.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The condition by which rows of the source match rows of the table, in Spark's SQL.
    pub condition: String,
    /// The name of the source in conditions and values.
    pub source_alias: String,
    /// The name of the table in conditions and values.
    pub target_alias: String,
    /// The clauses. Among the clauses for the same rows, the first one whose condition is true applies to a row.
    pub clauses: Vec<Clause>,
}

impl Merge {
    fn statement(&self) -> Statement {
        let texts = |when: When| {
            let clauses = self.clauses.iter().filter(move |clause| clause.when() == when);
            clauses
                .map(|clause| MergeClause {
                    predicate: clause.condition.clone(),
                    action: clause.action.name().to_owned(),
                })
                .collect()
        };
        Statement::Merge {
            predicate: self.condition.clone(),
            matched: texts(When::Matched),
            not_matched: texts(When::NotMatched),
            not_matched_by_source: texts(When::NotMatchedBySource),
        }
    }
}

/// Merges `source` into the rows of `base`. Times without a zone are in UTC. Columns that the request adds to the
/// table are added in the same commit, even if no rows change.
///
/// # Errors
/// Returns `InvalidArgument` for a condition or a value that cannot be evaluated, for a row with several matches, for
/// a row that the table does not allow, and for an append-only table. Returns `SchemaMismatch` for values that a
/// column cannot store. Also returns `CommitConflict`, `CommitStateUnknown`, `CorruptData`, and errors from the store.
pub fn merge(
    base: &Snapshot,
    merge: &Merge,
    source: &MergeSource,
    mut request: Request,
) -> Result<RowChangeOutcome> {
    let (environment, new_columns) = (request.environment.clone(), request.new_columns.take());
    run(base, request, &merge.statement(), |change| {
        let base = &with_columns(base, new_columns, change, &environment)?;
        let clauses = Clauses::bind(base, merge, source.schema())?;
        let sides = Sides::new(&clauses.joint, source, base.storage().batch_bytes());
        let matcher = Matcher::new(base, merge, &clauses, &sides)?;
        let condition = pruning(&matcher, &clauses)?;
        let bound = condition.bind(base.arrow_schema())?;
        change.reads(Some(condition.clone()));
        let by_vectors = base.deletes_by_vectors()?;
        let records = base.metadata().has_change_feed()
            && (clauses.have(Bound::is_update) || (!by_vectors && clauses.have(Bound::is_delete)));
        let mut writer = RowWriter::new(base, &environment, records)?;
        let mut counts =
            RowCounts { source: source.num_rows() as u64, deleted: Some(0), ..RowCounts::default() };
        let mut matched = RoaringBitmap::new();
        let candidates = candidates(base, &condition, &bound)?;
        let progress = Progress::new("MERGE", base.storage().url(), candidates.len() as u64, "files");
        for some in candidates.chunks(base.storage().most_readers()) {
            let started_ms = environment.now_ms();
            let found = parallel::each(some, some.len(), |candidate| {
                let file = &candidate.listed;
                let found = matcher.find(file).map_err(|error| error.at_path(&file.add.path));
                progress.add(1);
                found
            })?;
            counts.scan_ms += environment.ms_since(started_ms);
            let found_ms = environment.now_ms();
            for (Candidate { listed, .. }, mut found) in some.iter().zip(found) {
                if found.has_kept && !clauses.not_matched.is_empty() {
                    change.read_files([listed.add.clone()]);
                }
                matched |= &found.matched;
                clauses.count(&found.fates, &mut counts);
                if found.fates.is_empty() {
                    continue;
                }
                found.fates.sort_unstable_by_key(|fate| fate.position);
                let is_read = |fate: &&Fate| records || clauses.update(fate);
                let read = found.fates.iter().filter(is_read).map(|fate| fate.position).collect();
                let apply = |writer: &mut RowWriter, rows: &RecordBatch, positions: &[u64]| {
                    clauses.apply(&sides, &found.fates, writer, rows, positions)
                };
                let copied = take_rows(change, &mut writer, listed, found.rows, &read, by_vectors, apply);
                counts.copied += copied.map_err(|error| error.at_path(&listed.add.path))?;
            }
            counts.rewrite_ms += environment.ms_since(found_ms);
        }
        counts.inserted = insert(&clauses, &sides, &matched, &mut writer)?;
        change.finish(writer)?;
        Ok(counts)
    })
}

/// Returns a view of the table that has these columns, or `base` if the table needs no change. Lets `change` add the
/// columns that the table lacks, and widen the types of others if necessary.
fn with_columns(
    base: &Snapshot,
    columns: Option<StructType>,
    change: &mut RowChange,
    environment: &Environment,
) -> Result<Snapshot> {
    let header = columns.map(|columns| merged(base, &columns, environment)).transpose()?.flatten();
    let Some(header) = header else { return Ok(base.clone()) };
    let seen = base.seen_with(&header)?;
    change.set_header(header);
    Ok(seen)
}

/// The maximum number of rows of the source that are inserted as one batch.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Inserts the rows of the source that match no row of the table. Returns the number of inserted rows.
fn insert(
    clauses: &Clauses,
    sides: &Sides<'_>,
    matched: &RoaringBitmap,
    writer: &mut RowWriter,
) -> Result<u64> {
    if clauses.not_matched.is_empty() {
        return Ok(0);
    }
    let source = sides.source;
    let rows = u32::try_from(source.num_rows()).unwrap_or(u32::MAX);
    let all: Vec<u32> = (0..rows).filter(|row| !matched.contains(*row)).collect();
    let mut inserted = 0;
    for some in all.chunks(ROWS_AT_ONCE).flat_map(|some| sides.parts_of_source(some)) {
        let (decided, _) = decide(&clauses.not_matched, some.to_vec(), |rows, _| source.taken(rows))?;
        inserted += decided.len() as u64;
        for (place, clause) in clauses.not_matched.iter().enumerate() {
            let chosen = decided.iter().filter(|(_, chosen)| *chosen == place).map(|(row, _)| *row);
            clause.insert(sides.limits, &source.taken(&chosen.collect::<Vec<_>>())?, writer)?;
        }
    }
    Ok(inserted)
}
