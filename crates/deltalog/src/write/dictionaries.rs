//! Learns from the files of a write which columns are worth encoding with dictionaries.
//!
//! A dictionary saves space if values repeat. If nearly all values are different, it takes a fifth of the encoding
//! time and makes the file larger, because each row needs an index in addition to the stored values. Parquet's
//! writers only give up a dictionary when it reaches 1 MiB, which never happens in a file with fewer than 131,072
//! distinct numbers.
//!
//! - Earlier files decide: a column gets no dictionary if its dictionary in the last file saved less than a tenth of
//!   the bytes.
//! - Every [`TRIED_AGAIN`]th file has dictionaries for all columns again, because the values of a column may begin to
//!   repeat as the write proceeds.
//! - This only affects the size of files. If several files are written at once, the result depends on which of them
//!   is completed first.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parquet::basic::Type;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::schema::types::ColumnPath as FilePath;

/// The number of files after which all columns get dictionaries again.
const TRIED_AGAIN: usize = 8;

/// What the files of a write, or of several writes of similar rows, have shown about dictionaries. Clones share this
/// knowledge.
#[derive(Debug, Clone, Default)]
pub struct Dictionaries(Arc<Mutex<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    /// The number of files that have been started.
    begun: usize,
    /// The leaf columns whose dictionaries do not save enough space.
    useless: HashSet<FilePath>,
}

impl Dictionaries {
    /// Sets, in the properties of the next file's writer, which columns have dictionaries.
    pub(super) fn ask(&self, mut writer: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        let mut shown = self.shown();
        shown.begun += 1;
        if shown.begun % TRIED_AGAIN != 1 {
            for column in &shown.useless {
                writer = writer.set_column_dictionary_enabled(column.clone(), false);
            }
        }
        writer
    }

    /// Learns from the footer of a completed file.
    pub(super) fn learn(&self, footer: &ParquetMetaData) {
        let mut shown = self.shown();
        // Looks at the first row group, because the last one may be small.
        for column in footer.row_groups().first().map_or(&[][..], |group| group.columns()) {
            match pays(column) {
                Some(true) => shown.useless.remove(column.column_path()),
                Some(false) => shown.useless.insert(column.column_path().clone()),
                None => continue,
            };
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the dictionary of a column saves more than a tenth of the bytes of its values; `None` if the column
/// has no dictionary.
fn pays(column: &ColumnChunkMetaData) -> Option<bool> {
    column.dictionary_page_offset()?;
    let nulls = column.statistics().and_then(|statistics| statistics.null_count_opt()).unwrap_or(0);
    let values = u128::try_from(column.num_values()).ok()?.saturating_sub(u128::from(nulls));
    let plain = match column.column_type() {
        Type::BOOLEAN => values.div_ceil(8),
        Type::INT32 | Type::FLOAT => values * 4,
        Type::INT64 | Type::DOUBLE => values * 8,
        Type::INT96 => values * 12,
        Type::BYTE_ARRAY => values * 4 + u128::try_from(column.unencoded_byte_array_data_bytes()?).ok()?,
        Type::FIXED_LEN_BYTE_ARRAY => values * u128::try_from(column.column_descr().type_length()).ok()?,
    };
    let stored = u128::try_from(column.uncompressed_size()).ok()?;
    Some(stored * 10 < plain * 9)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::storage::Storage;
    use crate::write::encoder::Encoder;
    use crate::write::format::Format;
    use crate::write::nan_columns::NanColumns;

    /// Writes a file with a column of numbers and a column of strings, each with the given number of distinct values
    /// and a NULL in every tenth row. Returns which of the columns have a dictionary.
    fn write(dictionaries: &Dictionaries, numbers: usize, texts: usize) -> [bool; 2] {
        let present = |row: usize| !row.is_multiple_of(10);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter(
            (0..20_000).map(|row| present(row).then_some((row % numbers) as i64)),
        ));
        let texts: ArrayRef = Arc::new(StringArray::from_iter(
            (0..20_000).map(|row| present(row).then(|| format!("text {}", row % texts))),
        ));
        let rows = RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let (file, format) = (storage.create_file("f").unwrap(), Format::default());
        let mut encoder = Encoder::new(file, rows.schema_ref(), &format, Some(dictionaries), 1).unwrap();
        encoder.write(&rows, usize::MAX).unwrap();
        let (footer, file) = encoder.finish(&NanColumns::default()).unwrap();
        file.finish().unwrap();
        dictionaries.learn(&footer);
        let columns = footer.row_group(0).columns();
        [0, 1].map(|column| columns[column].dictionary_page_offset().is_some())
    }

    #[test]
    fn a_column_of_distinct_values_has_a_dictionary_in_every_eighth_file() {
        let dictionaries = Dictionaries::default();
        let all = 20_000;
        assert_eq!(write(&dictionaries, all, 9), [true, true]);
        for _ in 2..=TRIED_AGAIN {
            assert_eq!(write(&dictionaries, all, 9), [false, true]);
        }
        // From here on, the numbers repeat and the strings do not.
        assert_eq!(write(&dictionaries, 9, all), [true, true]);
        for _ in 2..=TRIED_AGAIN {
            assert_eq!(write(&dictionaries, 9, all), [true, false]);
        }
    }

    #[test]
    fn a_dictionary_of_few_large_values_saves_space() {
        let dictionaries = Dictionaries::default();
        for _ in 0..3 {
            assert_eq!(write(&dictionaries, 5_000, 5_000), [true, true]);
        }
    }
}
