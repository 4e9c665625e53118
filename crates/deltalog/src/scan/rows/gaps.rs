//! Reads around long gaps between selected rows.
//!
//! ```text
//! selected rows   ▪ ▪▪ ▪ ▪▪·················▪ ▪▪ ▪
//! decoded rows    ├───────┤                 ├────┤
//! ```
//!
//! If many separate rows are selected, the Parquet reader decodes all rows between the first and the last selected row
//! of a batch, and then drops the others. If there is a gap within the batch, for example because a deletion vector
//! deletes every second row and then millions of consecutive rows, all rows of the gap are decoded at once. A
//! [`GapReader`] skips the gaps, decodes the rows between them batch by batch, and drops the others itself.
//!
//! - A [`GapReader`] is also used if the selected rows are spread evenly, but so far apart that the rows between them
//!   would take a lot of memory.
//! - Neither a decoded batch nor a returned batch has more rows than the caller asked for.
//! - Each returned batch has at least one row.

use std::ops::Range;

use arrow::array::{BooleanArray, BooleanBufferBuilder, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection};

use crate::runtime::row_bytes::BatchBytes;

const WORD: usize = u64::BITS as usize;
/// The minimum length of a gap that is skipped, in words of 64 rows.
const GAP_WORDS: usize = 16;
/// The number of rows that the Parquet reader may decode for each row of a batch, unless they are wide. If selected
/// rows are spread evenly, it decodes fewer than that, or only the selected ones.
const MOST_PER_ROW: usize = 64;
/// The number of full batches that the Parquet reader may decode for one batch.
const MOST_BATCHES: usize = 4;
/// If the runs of selected rows and of other rows have at least this many rows on average, the Parquet reader decodes
/// only selected rows. This is twice the reader's own limit, because the reader also counts the rows before and after
/// the selected ones.
const ROWS_OF_A_RUN: usize = 64;

/// A selection in two steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Apart {
    /// The rows to decode: all rows except those in long gaps.
    pub(super) decoded: RowSelection,
    /// Whether each decoded row is selected.
    pub(super) kept: BooleanBuffer,
}

impl Apart {
    /// Returns the selection in two steps. Returns `None` if the Parquet reader can select the rows itself, in batches
    /// of `rows` rows, without decoding more than `most` rows at once.
    pub(super) fn of(selection: &RowSelection, rows: usize, most: usize) -> Option<Self> {
        let (first, mask, all) = match selection.as_mask() {
            Some(mask) => (0, mask.clone(), mask.len()),
            None => mask_of(selection)?,
        };
        let words: Vec<u64> = mask.bit_chunks().iter_padded().collect();
        if most_decoded(&words, rows) <= most || has_long_runs(&words) {
            return None;
        }
        let runs = runs(&words).into_iter().map(|run| run.start * WORD..mask.len().min(run.end * WORD));
        let runs: Vec<Range<usize>> = runs.collect();
        let mut kept = BooleanBufferBuilder::new(runs.iter().map(Range::len).sum());
        for run in &runs {
            kept.append_buffer(&mask.slice(run.start, run.len()));
        }
        let decoded = runs.into_iter().map(|run| first + run.start..first + run.end);
        let decoded = RowSelection::from_consecutive_ranges(decoded, all);
        Some(Self { decoded, kept: kept.finish() })
    }
}

/// Returns the maximum number of rows that the Parquet reader may decode for a batch of `rows` rows. `bytes_per_row` is
/// the size of a decoded row.
pub(super) fn most_at_once(limits: BatchBytes, bytes_per_row: f64, rows: usize) -> usize {
    let full = limits.rows(bytes_per_row, usize::MAX);
    full.saturating_mul(MOST_BATCHES).min(rows.saturating_mul(MOST_PER_ROW)).max(rows)
}

/// Converts a selection that consists of runs. Returns the number of its first selected row, a mask of the rows from
/// the first to the last selected one, and the number of all rows. The mask leaves out the rows before and after them,
/// because a damaged footer may state more such rows than a mask can have. Returns `None` if there are few runs, which
/// the Parquet reader decodes one by one.
fn mask_of(runs: &RowSelection) -> Option<(usize, BooleanBuffer, usize)> {
    let (mut count, mut rows, mut used) = (0, 0, 0..0);
    for run in runs.iter() {
        if !run.skip {
            used = if used.is_empty() { rows } else { used.start }..rows + run.row_count;
        }
        (count, rows) = (count + 1, rows + run.row_count);
    }
    if count * ROWS_OF_A_RUN <= used.len() {
        return None;
    }
    let (mut mask, mut start) = (BooleanBufferBuilder::new(used.len()), 0);
    for run in runs.iter() {
        let end = start + run.row_count;
        mask.append_n((start.max(used.start)..end.min(used.end)).len(), !run.skip);
        start = end;
    }
    Some((used.start, mask.finish(), rows))
}

/// Returns the maximum number of rows from the first to the last row of a batch with `rows` selected rows, rounded up
/// to words.
fn most_decoded(words: &[u64], rows: usize) -> usize {
    let (mut most, mut first, mut selected) = (0, None, 0);
    for (index, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        let start = *first.get_or_insert(index);
        most = most.max((index + 1 - start) * WORD);
        selected += word.count_ones() as usize;
        if selected >= rows {
            selected %= rows.max(1);
            first = (selected > 0).then_some(index);
        }
    }
    most
}

/// Returns whether the selected rows form few runs, which the Parquet reader decodes one by one.
fn has_long_runs(words: &[u64]) -> bool {
    let is_used = |word: &u64| *word != 0;
    let used = match (words.iter().position(is_used), words.iter().rposition(is_used)) {
        (Some(first), Some(last)) => last - first + 1,
        _ => 0,
    };
    let (mut changes, mut before) = (0, 0);
    for word in words {
        changes += (word ^ (word << 1 | before)).count_ones() as usize;
        before = word >> (u64::BITS - 1);
    }
    changes * ROWS_OF_A_RUN <= used * WORD
}

/// Returns the ranges of words between the long gaps.
fn runs(words: &[u64]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, _) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        match runs.last_mut() {
            Some(run) if index - run.end < GAP_WORDS => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// A Parquet reader whose selection may be in two steps.
#[derive(Debug)]
pub(super) struct GapReader {
    reader: ParquetRecordBatchReader,
    /// Whether each row of the reader is selected; `None` if all of them are.
    kept: Option<BooleanBuffer>,
    /// The number of rows that the reader has returned.
    done: usize,
}

impl GapReader {
    pub(super) fn new(reader: ParquetRecordBatchReader, kept: Option<BooleanBuffer>) -> Self {
        Self { reader, kept, done: 0 }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        arrow::array::RecordBatchReader::schema(&self.reader)
    }
}

impl Iterator for GapReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = match self.reader.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            let Some(kept) = &self.kept else { return Some(Ok(batch)) };
            let rows = batch.num_rows();
            if kept.len() - self.done < rows {
                let message = "the Parquet reader returned more rows than were selected";
                return Some(Err(ArrowError::ParquetError(message.to_owned())));
            }
            let kept = kept.slice(self.done, rows);
            self.done += rows;
            if kept.count_set_bits() > 0 {
                return Some(filter_record_batch(&batch, &BooleanArray::from(kept)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use parquet::arrow::arrow_reader::RowSelector;

    use super::*;

    /// Stretches of rows: none, all, every second, or every 60th row is selected.
    fn mask() -> impl Strategy<Value = BooleanBuffer> {
        let stretch = (prop::sample::select(vec![0, 1, 2, 60]), 0..5_000_usize);
        prop::collection::vec(stretch, 0..8).prop_map(|stretches| {
            let bits = stretches
                .into_iter()
                .flat_map(|(step, rows)| (0..rows).map(move |row| step > 0 && row % step == 0));
            bits.collect()
        })
    }

    proptest! {
        #[test]
        fn both_steps_select_the_same_rows(mask in mask(), rows in 1..100_usize) {
            let selection = RowSelection::from_boolean_buffer(mask.clone());
            let runs = RowSelection::from(Vec::from(selection.clone()));
            for apart in [&selection, &runs].into_iter().filter_map(|wanted| Apart::of(wanted, rows, 64 * rows)) {
                let kept = RowSelection::from_boolean_buffer(apart.kept.clone());
                prop_assert_eq!(apart.decoded.row_count(), apart.kept.len());
                let both: RowSelection = apart.decoded.and_then(&kept);
                let selected = |selection: &RowSelection| {
                    let mut first = 0;
                    let mut found = Vec::new();
                    for run in Vec::from(selection.clone()) {
                        let run: RowSelector = run;
                        if !run.skip {
                            found.extend(first..first + run.row_count);
                        }
                        first += run.row_count;
                    }
                    found
                };
                prop_assert_eq!(selected(&both), mask.set_indices().collect::<Vec<_>>());
            }
        }
    }

    /// A damaged footer may state any number of rows.
    #[test]
    fn rows_before_and_after_the_selected_ones_take_no_memory() {
        let many = 1 << 60;
        let every_second =
            |rows: usize| (0..rows).flat_map(|_| [RowSelector::select(1), RowSelector::skip(1)]);
        let [before, after] = [RowSelector::skip(many + 3), RowSelector::skip(many)];
        let few: Vec<RowSelector> = [before].into_iter().chain(every_second(3)).chain([after]).collect();
        assert_eq!(Apart::of(&few.into(), 100, 6_400), None);
        let gap = RowSelector::skip(20_000);
        let apart = [before].into_iter().chain(every_second(300)).chain([gap]).chain(every_second(250));
        let selection: RowSelection = apart.chain([after]).collect();
        let found = Apart::of(&selection, 310, 21_000);
        assert_eq!(found, None, "so many rows may be decoded");
        let found = Apart::of(&selection, 310, 19_840).unwrap();
        assert!(found.kept.len() < 1_200, "{}", found.kept.len());
        let kept = Vec::<RowSelector>::from(RowSelection::from_boolean_buffer(found.kept));
        assert_eq!(found.decoded.and_then(&kept.into()), selection);
    }

    #[test]
    fn only_long_gaps_within_a_batch_are_skipped() {
        let every = |step: usize, rows: usize| (0..rows).map(move |row| row % step == 0);
        let none = |rows: usize| std::iter::repeat_n(false, rows);
        let apart = |bits: Vec<bool>| Apart::of(&RowSelection::from_boolean_buffer(bits.into()), 100, 6_400);
        assert_eq!(apart(every(2, 100_000).collect()), None);
        assert_eq!(apart(every(62, 100_000).collect()), None);
        assert_eq!(apart(none(100_000).chain(every(2, 1_000)).chain(none(100_000)).collect()), None);
        assert_eq!(apart(every(2, 998).chain(none(5_000)).chain(every(2, 500)).collect()), None);
        let long = || (0..900).map(|row| row % 300 < 50);
        assert_eq!(apart(long().chain(none(10_000)).chain(long()).collect()), None);
        let found = apart(every(2, 998).chain(none(10_000)).chain(every(2, 500)).collect()).unwrap();
        assert!(found.kept.len() < 1_700, "{}", found.kept.len());
        assert_eq!(found.kept.count_set_bits(), 749);
    }
}
