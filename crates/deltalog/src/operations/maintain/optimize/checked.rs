//! Optionally checks, before the commit, that the new files contain the same rows as the old files.

use arrow::array::RecordBatch;

use super::rewrite::{BinRewriter, NewFile, Rewritten};
use super::row_sum::RowSum;
use crate::error::{Error, Result};
use crate::operations::rewrite::ListedFile;
use crate::scan::{DataFile, FileRows};

/// A checksum of the rows read from the old files of a bin; `None` if no check was requested.
#[derive(Default)]
pub(super) struct ReadRows(Option<RowSum>);

impl ReadRows {
    /// Adds rows that were read, if the check was requested.
    ///
    /// # Errors
    /// Returns `CorruptData` for values that cannot be compared.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), |sum| sum.add(batch))
    }
}

impl BinRewriter<'_> {
    /// Returns an empty checksum for the rows to be read. It stays empty unless the check was requested.
    pub(super) fn read_rows(&self) -> ReadRows {
        ReadRows(self.checks_rows.then(RowSum::default))
    }

    /// Reads the new files of a bin and compares their rows with the rows of the old files, if the check was requested.
    ///
    /// # Errors
    /// Returns `CorruptData` if the rows differ, and errors from the store.
    pub(super) fn checked(
        &self,
        files: &[ListedFile],
        before: &ReadRows,
        written: Rewritten,
    ) -> Result<Rewritten> {
        let Some(before) = before.0 else { return Ok(written) };
        let found = self.sum_of(files, &written.new).and_then(|after| match before == after {
            true => Ok(written),
            false => Err(Error::corrupt_data(format!(
                "the new files do not contain the same rows as the old files ({} rows were read, {} were written); \
                 nothing was committed",
                before.rows, after.rows
            ))
            .with_hint("the table is unchanged: check the memory and the disks for faults, and report this")),
        });
        found.map_err(|error| self.base.located(error))
    }

    /// Returns the checksum of the rows in new files, which are not part of the table yet.
    fn sum_of(&self, old: &[ListedFile], new: &[NewFile]) -> Result<RowSum> {
        let mut sum = RowSum::default();
        let Some(like) = old.first() else { return Ok(sum) };
        let files: Vec<Result<DataFile>> = new
            .iter()
            .map(|NewFile { add, .. }| {
                // All files of a bin have the same partition values. Row ids are stored in the new files.
                Ok(DataFile {
                    path: self.base.resolver().parse(&add.path)?,
                    size: u64::try_from(add.size).unwrap_or_default(),
                    rows: FileRows::All,
                    ..like.file.clone()
                })
            })
            .collect();
        for batch in self.copy.scan.clone().read(files.into_iter()) {
            sum.add(&batch?)?;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};

    use super::super::plan::{Bin, BinOrder};
    use super::*;
    use crate::commit::Operation;
    use crate::error::ErrorKind;
    use crate::operations::rewrite::listed_files;
    use crate::protocol::{PrimitiveType, StructField, StructType};
    use crate::runtime::environment::Environment;
    use crate::runtime::progress::Progress;
    use crate::snapshot::Snapshot;
    use crate::storage::Storage;
    use crate::write::TableWriteSpec;
    use crate::{PendingWrite, SaveMode, WriteRequest};

    fn parquet_files(directory: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().ends_with(".parquet")).count()
    }

    #[test]
    fn if_rows_differ_the_new_files_are_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let environment = Environment::system();
        let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)]).unwrap();
        for first in [0, 10] {
            let request = WriteRequest::new(schema.clone(), SaveMode::Append);
            let write = PendingWrite::begin(&storage, request, &environment).unwrap().unwrap();
            let ids = Int64Array::from_iter_values(first..first + 10);
            let mut writer = write.writer().unwrap();
            writer.write(&RecordBatch::try_from_iter([("id", Arc::new(ids) as _)]).unwrap()).unwrap();
            write.commit_or_fail(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
        }
        let base = Snapshot::open(&storage, None).unwrap();
        let spec = TableWriteSpec::of(&base).unwrap();
        let progress = Progress::new("OPTIMIZE", storage.url(), 0, "bytes");
        let rewriter = BinRewriter::new(&base, spec, None, true, progress, &environment).unwrap();
        let bin = Bin { files: listed_files(&base, None).unwrap(), order: BinOrder::Kept };
        let written = rewriter.join(&bin.files, 1 << 20).unwrap();
        assert_eq!((written.new[0].rows, parquet_files(directory.path())), (20, 3));
        // The files are the same, but one additional row was read.
        let mut before = rewriter.read_rows();
        let files: Vec<_> = bin.files.iter().map(|file| Ok(file.file.clone())).collect();
        for batch in rewriter.copy.scan.clone().read(files.into_iter()) {
            before.add(&batch.unwrap()).unwrap();
        }
        let written = rewriter.checked(&bin.files, &before, written).unwrap();
        before
            .add(&RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![7])) as _)]).unwrap())
            .unwrap();
        let error = rewriter.settle(rewriter.checked(&bin.files, &before, written)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
        assert!(error.to_string().contains("21 rows were read, 20 were written"), "{error}");
        assert_eq!(parquet_files(directory.path()), 2);
    }
}
