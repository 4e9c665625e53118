//! The totals of a version's live files, which its checksum file records. (PROTOCOL, "Version Checksum File", "File
//! Size Histogram Schema", "Deleted Record Counts Histogram Schema".)
//!
//! - Files are added to and subtracted from the totals one by one, so that the totals can be carried from version to
//!   version.
//! - An unknown total stays unknown; the other totals are kept.
//! - A change that would make a total negative is refused, because the totals then do not belong to this log.

use serde::{Deserialize, Serialize};

use super::VersionChecksum;

/// The distribution of file sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSizeHistogram {
    /// The lower bound of each bin in bytes, ascending.
    pub sorted_bin_boundaries: Vec<i64>,
    /// The number of files in each bin.
    pub file_counts: Vec<i64>,
    /// The total size in bytes of the files in each bin.
    pub total_bytes: Vec<i64>,
}

impl FileSizeHistogram {
    /// Returns an empty histogram with these bins.
    pub(crate) fn with_bins(sorted_bin_boundaries: Vec<i64>) -> Self {
        let zeros = vec![0; sorted_bin_boundaries.len()];
        Self { sorted_bin_boundaries, file_counts: zeros.clone(), total_bytes: zeros }
    }

    /// Returns an empty histogram with the bins that other writers use. The JVM connector treats a checksum with other
    /// bins as damaged.
    pub(crate) fn empty() -> Self {
        /// Pairs of an upper limit and the width of the bins below it, both in MiB.
        const STEPS: [(i64, i64); 7] =
            [(40, 4), (120, 8), (144, 4), (576, 16), (1408, 64), (2048, 128), (4096, 256)];
        let mut bins = vec![0];
        // Powers of two from 8 KiB to 4 MiB, then equal steps, then powers of two from 8 GiB to 256 GiB.
        bins.extend((13..=22).map(|power| 1_i64 << power));
        let mut last = 4;
        for (end, width) in STEPS {
            while last < end {
                last += width;
                bins.push(last << 20);
            }
        }
        bins.extend((33..=38).map(|power| 1_i64 << power));
        Self::with_bins(bins)
    }

    /// Returns whether the histogram has the bins that other writers use, and a number of files and of bytes for each
    /// bin.
    fn has_usual_bins(&self) -> bool {
        let usual = Self::empty();
        self.sorted_bin_boundaries == usual.sorted_bin_boundaries
            && self.file_counts.len() == usual.file_counts.len()
            && self.total_bytes.len() == usual.total_bytes.len()
    }

    /// Adds `sign` to the count of files and `sign` times `size` to the bytes, in the bin of a file of `size` bytes.
    fn count(&mut self, sign: i64, size: i64) -> Option<()> {
        let bin = self.sorted_bin_boundaries.partition_point(|boundary| *boundary <= size).checked_sub(1);
        // No bin contains the file: the bins of another writer may not start at 0.
        let Some(bin) = bin else { return Some(()) };
        change(self.file_counts.get_mut(bin)?, sign)?;
        change(self.total_bytes.get_mut(bin)?, sign.checked_mul(size)?)
    }
}

/// The totals of the deletion vectors of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VectorTotals {
    /// The number of rows that deletion vectors mark as deleted.
    pub(crate) deleted_records: i64,
    /// The number of files that have a deletion vector.
    pub(crate) vectors: i64,
}

/// Whether a file is added to the totals or subtracted from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Removed,
}

/// The totals of the live files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileTotals {
    /// The number of files.
    pub(crate) files: u64,
    /// The sum of the sizes of the files in bytes.
    pub(crate) bytes: u64,
    /// The distribution of the files' sizes, if it is known.
    pub(crate) sizes: Option<FileSizeHistogram>,
    /// The totals of the files' deletion vectors, if they are known.
    pub(crate) vectors: Option<VectorTotals>,
    /// The number of files by their number of deleted rows, in the bins of the protocol, if known.
    pub(crate) deleted_record_counts: Option<Vec<i64>>,
}

impl FileTotals {
    /// Returns the totals of a table without files, with the bins of `sizes`.
    pub(crate) fn empty(sizes: FileSizeHistogram) -> Self {
        Self {
            files: 0,
            bytes: 0,
            sizes: Some(sizes),
            vectors: Some(VectorTotals::default()),
            deleted_record_counts: Some(vec![0; DELETED_RECORD_BINS]),
        }
    }

    /// Returns the totals that `checksum` records. A histogram of file sizes with unusual bins is treated as unknown:
    /// if it were carried over to later versions, other writers would treat the checksums of those versions as damaged.
    /// `without_vectors` states that no file of this version can have a deletion vector.
    pub(crate) fn of(checksum: &VersionChecksum, without_vectors: bool) -> Self {
        let recorded = checksum.num_deleted_records.zip(checksum.num_deletion_vectors);
        let mut none = vec![0; DELETED_RECORD_BINS];
        if let (Some(first), Ok(files)) = (none.first_mut(), i64::try_from(checksum.num_files)) {
            *first = files;
        }
        Self {
            files: checksum.num_files,
            bytes: checksum.table_size_bytes,
            sizes: checksum.file_size_histogram.clone().filter(FileSizeHistogram::has_usual_bins),
            vectors: recorded
                .map(|(deleted_records, vectors)| VectorTotals { deleted_records, vectors })
                .or_else(|| without_vectors.then(VectorTotals::default)),
            deleted_record_counts: checksum
                .deleted_record_counts
                .clone()
                .filter(|counts| counts.len() == DELETED_RECORD_BINS)
                .or_else(|| without_vectors.then_some(none)),
        }
    }

    /// Returns whether all totals are known.
    pub(crate) fn are_complete(&self) -> bool {
        self.sizes.is_some() && self.vectors.is_some() && self.deleted_record_counts.is_some()
    }

    /// Records the totals in `checksum`.
    pub(crate) fn record_in(self, checksum: &mut VersionChecksum) {
        checksum.num_files = self.files;
        checksum.table_size_bytes = self.bytes;
        checksum.file_size_histogram = self.sizes;
        checksum.num_deleted_records = self.vectors.as_ref().map(|vectors| vectors.deleted_records);
        checksum.num_deletion_vectors = self.vectors.as_ref().map(|vectors| vectors.vectors);
        checksum.deleted_record_counts = self.deleted_record_counts;
    }

    /// Adds or subtracts a file of `size` bytes. `deleted` is the number of rows that its deletion vector marks, or
    /// `None` if it has no deletion vector. Returns `None` if the totals then cannot belong to the log, or if the file
    /// has an impossible size.
    pub(crate) fn count(&mut self, direction: Change, size: i64, deleted: Option<i64>) -> Option<()> {
        let rows = deleted.unwrap_or_default();
        if size < 0 || rows < 0 {
            return None;
        }
        let sign = match direction {
            Change::Added => 1,
            Change::Removed => -1,
        };
        self.files = self.files.checked_add_signed(sign)?;
        self.bytes = self.bytes.checked_add_signed(sign.checked_mul(size)?)?;
        if let Some(sizes) = &mut self.sizes {
            sizes.count(sign, size)?;
        }
        if let Some(vectors) = &mut self.vectors {
            change(&mut vectors.deleted_records, sign.checked_mul(rows)?)?;
            change(&mut vectors.vectors, if deleted.is_some() { sign } else { 0 })?;
        }
        if let Some(counts) = &mut self.deleted_record_counts {
            change(counts.get_mut(decade(rows))?, sign)?;
        }
        Some(())
    }
}

/// Adds `by` to a total. Returns `None` if it would become negative.
fn change(total: &mut i64, by: i64) -> Option<()> {
    *total = total.checked_add(by).filter(|total| *total >= 0)?;
    Some(())
}

/// The number of bins of the histogram of deleted rows.
const DELETED_RECORD_BINS: usize = 10;

/// Returns the bin of `DeletedRecordCountsHistogram`. The bins are: 0; 1 to 9; 10 to 99; … ; below 2³¹ - 1; the rest.
fn decade(deleted: i64) -> usize {
    match deleted {
        i64::MIN..=0 => 0,
        1..=9_999_999 => deleted.ilog10() as usize + 1,
        10_000_000..=0x7fff_fffe => 8,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// PROTOCOL, "Deleted Record Counts Histogram Schema".
    #[test]
    fn deleted_records_are_counted_in_the_bins_of_the_protocol() {
        let bins = [
            (0, 0),
            (1, 1),
            (9, 1),
            (10, 2),
            (99, 2),
            (100, 3),
            (9_999, 4),
            (99_999, 5),
            (100_000, 6),
            (9_999_999, 7),
            (10_000_000, 8),
        ];
        for (deleted, bin) in
            bins.into_iter().chain([(i64::from(i32::MAX) - 1, 8), (i64::from(i32::MAX), 9), (i64::MAX, 9)])
        {
            assert_eq!(decade(deleted), bin, "{deleted}");
        }
    }

    /// The JVM connector requires exactly its own 95 bins.
    #[test]
    fn file_sizes_are_counted_in_the_bins_of_the_jvm_connector() {
        let bins = FileSizeHistogram::empty().sorted_bin_boundaries;
        assert_eq!(bins.len(), 95);
        assert!(bins.is_sorted_by(|a, b| a < b));
        let kib = |bytes: i64| bytes >> 10;
        assert_eq!(bins[..4].iter().map(|bin| kib(*bin)).collect::<Vec<_>>(), [0, 8, 16, 32]);
        for (mib, is_bin) in [
            (4, true),
            (8, true),
            (40, true),
            (44, false),
            (48, true),
            (124, true),
            (160, true),
            (152, false),
            (576, true),
            (640, true),
            (1408, true),
            (1536, true),
            (2048, true),
            (4096, true),
            (8192, true),
            (262_144, true),
        ] {
            assert_eq!(bins.contains(&(mib << 20)), is_bin, "{mib} MiB");
        }
    }

    proptest! {
        /// Adding files and subtracting the same files, in any order, restores the totals.
        #[test]
        fn removals_undo_additions(files in vec((0..1_i64 << 40, prop::option::of(0..1_i64 << 33)), 0..20)) {
            let mut totals = FileTotals::empty(FileSizeHistogram::empty());
            let empty = totals.clone();
            for (size, deleted) in &files {
                totals.count(Change::Added, *size, *deleted).unwrap();
            }
            prop_assert_eq!(totals.files, files.len() as u64);
            let sizes = totals.sizes.as_ref().unwrap();
            prop_assert_eq!(sizes.file_counts.iter().sum::<i64>(), i64::try_from(files.len()).unwrap());
            prop_assert_eq!(u64::try_from(sizes.total_bytes.iter().sum::<i64>()).unwrap(), totals.bytes);
            for (size, deleted) in files.iter().rev() {
                totals.count(Change::Removed, *size, *deleted).unwrap();
            }
            prop_assert_eq!(&totals, &empty);
            prop_assert_eq!(totals.count(Change::Removed, 1, None), None);
        }
    }
}
