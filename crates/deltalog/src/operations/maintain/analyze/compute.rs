//! Computes the statistics of one file.
//!
//! - For a file without deleted rows, the footer suffices for all columns whose statistics it contains completely.
//! - For all other columns, the rows are read. For a file with a deletion vector, all indexed columns are read,
//!   without the deleted rows, so the bounds are tight.
//! - The statistics are marked as computed by this crate, unless some come from the footer of an unknown writer, or
//!   from earlier statistics without the mark ([`crate::values::stats::is_own`]).
//! - `numRecords` is the number of rows in the data file, including deleted rows. (PROTOCOL, "Per-file Statistics".)

use std::collections::BTreeSet;

use arrow::datatypes::{DataType, Field, Fields};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::schema::types::Type;

use crate::error::{Error, Result};
use crate::expression::predicate::{ColumnPath, column_at};
use crate::operations::rewrite::ListedFile;
use crate::protocol::{Add, Tags};
use crate::runtime::by_name::ByName;
use crate::scan::RowScan;
use crate::snapshot::Snapshot;
use crate::values::stats::{ColumnValues, KnownNans, OF_ROWS, StatsTree, footer_columns, is_bounded};
use crate::write::read_footer;

/// Computes the statistics of files of one version. Several threads may use it at the same time.
pub(super) struct Computer<'a> {
    base: &'a Snapshot,
    scan: RowScan,
    columns: Vec<Column>,
}

/// A column that should have statistics.
struct Column {
    physical: ColumnPath,
    logical: ColumnPath,
    data_type: DataType,
}

/// A file and its new statistics.
pub(super) struct Computed {
    /// The action of the file when it was read.
    pub(super) add: Add,
    /// The new statistics.
    pub(super) stats: Option<String>,
    pub(super) source: Source,
}

/// How the statistics were computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Footer,
    Rows,
}

impl Computed {
    /// Returns whether the rows were read, but the file's action does not have the tag yet that records this.
    pub(super) fn is_newly_tagged(&self) -> bool {
        let has_tag = self.add.tags.as_ref().is_some_and(|tags| tags.contains_key(OF_ROWS));
        self.source == Source::Rows && !has_tag
    }

    /// Returns `add`, the newest action of the same file, with the new statistics.
    pub(super) fn updated(&self, add: &Add) -> Add {
        let mut add = add.clone();
        add.data_change = false;
        add.stats.clone_from(&self.stats);
        if self.source == Source::Rows {
            let tags = add.tags.get_or_insert_with(Tags::new);
            tags.insert(OF_ROWS.to_owned(), Some("true".to_owned()));
        }
        add
    }
}

/// Returns those `columns` that the file contains with the same ids as the table. The ids of the structs around a
/// column must be the same as well. If a column has no id in the table, its id in the file does not matter.
fn with_ids<'a>(
    columns: &'a [Column],
    file: &'a Type,
    table: &'a Fields,
) -> impl Iterator<Item = &'a Column> {
    let by_name = ByName::new(table.len(), |at| Some(table.get(at)?.name().as_str()));
    let in_file = file.get_fields();
    let by_name_in_file = ByName::new(in_file.len(), |at| Some(in_file.get(at)?.name()));
    columns.iter().filter(move |column| {
        let Some((name, rest)) = column.physical.parts().split_first() else { return false };
        let in_table = by_name.find(name).and_then(|at| table.get(at));
        let in_file = by_name_in_file.find(name).and_then(|at| in_file.get(at));
        in_table.zip(in_file).is_some_and(|(in_table, in_file)| has_ids(in_file, in_table, rest))
    })
}

/// Returns whether `in_file`, a column of a file, has the same id as the table's column `in_table`, and whether the
/// file has all fields on the path `rest` inside of this column with the same ids.
fn has_ids(in_file: &Type, in_table: &Field, rest: &[String]) -> bool {
    let info = in_file.get_basic_info();
    let is_same = match in_table.metadata().get(PARQUET_FIELD_ID_META_KEY) {
        Some(id) => info.has_id() && info.id().to_string() == *id,
        None => true,
    };
    let parts = match in_table.data_type() {
        DataType::Struct(parts) => parts,
        _ => &Fields::empty(),
    };
    let Some((name, rest)) = rest.split_first() else { return is_same };
    let in_table = parts.iter().find(|field| field.name() == name);
    let inside = match in_file.is_group() {
        true => in_file.get_fields().iter().find(|field| field.name() == name),
        false => None,
    };
    is_same && in_table.zip(inside).is_some_and(|(in_table, inside)| has_ids(inside, in_table, rest))
}

impl<'a> Computer<'a> {
    /// Creates a computer for the statistics of `columns`, which are given by their physical names.
    ///
    /// # Errors
    /// Returns `CorruptLog` for an invalid schema.
    pub(super) fn of(base: &'a Snapshot, columns: Vec<(ColumnPath, DataType)>) -> Result<Self> {
        let schema = base.mapped_schema();
        let column = |(physical, data_type): (ColumnPath, DataType)| {
            let logical = schema.logical_path(physical.parts()).map(ColumnPath::new);
            let missing = || Error::corrupt_log(format!("the column {physical} is not in the schema"));
            Ok(Column { logical: logical.ok_or_else(missing)?, physical, data_type })
        };
        let columns = columns.into_iter().map(column).collect::<Result<_>>()?;
        Ok(Self { base, scan: RowScan::of(base)?.with_threads(1), columns })
    }

    /// Computes the statistics of a file.
    ///
    /// # Errors
    /// Returns `FileNotFound`, `CorruptData` for a file that cannot be read, `Unsupported` for encodings that are not
    /// implemented, and errors from the store.
    pub(super) fn compute(&self, file: &ListedFile) -> Result<Computed> {
        self.try_compute(file).map_err(|error| self.base.located(error.at_path(&file.add.path)))
    }

    fn try_compute(&self, file: &ListedFile) -> Result<Computed> {
        let add = &file.add;
        let footer = read_footer(&self.base.storage().open_log_path(&file.file.path)?)?;
        let rows = footer.file_metadata().num_rows();
        let old = add.stats.as_deref().and_then(StatsTree::parse);
        let recorded = old.as_ref().and_then(StatsTree::rows);
        if rows < 0 || recorded.is_some_and(|recorded| recorded != rows && add.base_row_id.is_some()) {
            return Err(Error::corrupt_data(format!(
                "the footer has {rows} rows, but the statistics have {}, and the row ids depend on this number",
                recorded.unwrap_or_default()
            ))
            .with_hint("rewrite the file's rows to a new file"));
        }
        let has_vector = add.deletion_vector.is_some();
        // The existing statistics of other columns are kept if they describe the same rows.
        let mut stats = old.filter(|old| old.is_tight() && recorded == Some(rows)).unwrap_or_default();
        stats.set_rows(rows, (has_vector || stats.says_tight()).then_some(true));
        let all = || self.columns.iter().map(|column| (column.physical.clone(), column.data_type.clone()));
        for (path, _) in all() {
            stats.forget(path.parts());
        }
        let mut is_own = stats.is_own() || stats.has_no_columns();
        if !has_vector {
            // If columns have ids, a scan finds them by id. A column of the file with the same name but another id is
            // a different column, so its statistics are not used.
            let fields = self.base.mapped_schema().physical_arrow().fields();
            let root = footer.file_metadata().schema_descr().root_schema();
            let known = with_ids(&self.columns, root, fields);
            let known = known.map(|column| (column.physical.clone(), column.data_type.clone()));
            footer_columns(&footer, known).for_each(|column| stats.set(&column));
            is_own &= KnownNans::of(&footer).is_of_known_writer();
        }
        let is_lacking =
            |column: &&Column| stats.lacks(column.physical.parts(), !is_bounded(&column.data_type));
        let lacking: Vec<&Column> = self.columns.iter().filter(is_lacking).collect();
        let source = if lacking.is_empty() { Source::Footer } else { Source::Rows };
        if source == Source::Rows {
            self.read_rows(file, &lacking, &mut stats)?;
        }
        stats.set_own(is_own);
        Ok(Computed { add: add.clone(), stats: Some(stats.text()), source })
    }

    /// Computes the statistics of `columns` from the rows of a file, without deleted rows.
    fn read_rows(&self, file: &ListedFile, columns: &[&Column], stats: &mut StatsTree) -> Result<()> {
        let names: BTreeSet<&String> =
            columns.iter().filter_map(|column| column.logical.parts().first()).collect();
        let scan = self.scan.clone().with_projection(&names.into_iter().collect::<Vec<_>>())?;
        let mut values: Vec<ColumnValues> = columns
            .iter()
            .map(|column| ColumnValues::of(column.physical.clone(), column.data_type.clone()))
            .collect();
        for batch in scan.read(std::iter::once(Ok(file.file.clone()))) {
            let batch = batch?;
            for (column, values) in columns.iter().zip(&mut values) {
                values.add(&column_at(&batch, &column.logical)?)?;
            }
        }
        values.into_iter().for_each(|values| stats.set(&values.finish()));
        Ok(())
    }
}
