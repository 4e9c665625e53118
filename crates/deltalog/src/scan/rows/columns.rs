//! The table columns that a scan needs, and where each of them comes from.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};

use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::plan::leaf_count;
use super::{projected, row_ids};
use crate::error::{Error, Result};
use crate::expression::predicate::BoundPredicate;
use crate::protocol::MaterializedRowTracking;
use crate::protocol::schema::is_variant;
use crate::runtime::spelling::nearest_first;

/// The columns to read: first the output columns, followed by columns that only the predicate needs.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    table: SchemaRef,
    /// The same fields, with the names and ids that they have in data files.
    in_files: SchemaRef,
    partitions: Vec<usize>,
    /// The output columns, as indices into `table`.
    output: Vec<usize>,
    /// The columns to read, as indices into `table`, beginning with `output`.
    needed: Vec<usize>,
    /// The fields of the columns in `needed` that follow the output columns, as in the table and as in data files.
    /// Structs contain only the fields that the predicate reads.
    extra: Vec<[FieldRef; 2]>,
    /// The names of the columns in which files store row ids and commit versions, if these are requested.
    pub(super) row_tracking: Option<MaterializedRowTracking>,
    /// The part of the predicate that reads only partition columns. It is evaluated once per file.
    pub(super) file_predicate: Option<BoundPredicate>,
    /// The rest of the predicate, which is evaluated for each row.
    pub(super) row_predicate: Option<BoundPredicate>,
}

/// A column to read.
#[derive(Debug, Clone)]
pub(super) struct NeededColumn {
    pub(super) field: FieldRef,
    /// The same field with the name and id that it has in data files.
    pub(super) in_files: FieldRef,
    pub(super) is_partition: bool,
}

impl Columns {
    pub(super) fn new(table: &SchemaRef, partitions: &[usize]) -> Self {
        let all: Vec<usize> = (0..table.fields().len()).collect();
        let (output, needed) = (all.clone(), all);
        Self {
            table: Arc::clone(table),
            in_files: Arc::clone(table),
            partitions: partitions.to_vec(),
            output,
            needed,
            extra: Vec::new(),
            row_tracking: None,
            file_predicate: None,
            row_predicate: None,
        }
    }

    /// Finds columns in data files by the names and ids in `in_files`, which must have the same shape as the table's
    /// schema.
    pub(super) fn map(&mut self, in_files: &SchemaRef) -> Result<()> {
        let pairs = self.table.fields().iter().zip(in_files.fields());
        if self.table.fields().len() != in_files.fields().len()
            || !pairs.into_iter().all(|(a, b)| has_same_shape(a, b))
        {
            return Err(Error::invalid_argument(
                "the physical schema does not have the shape of the table's schema",
            ));
        }
        self.in_files = Arc::clone(in_files);
        self.update_needed()
    }

    /// Returns whether columns are found in data files by field id.
    pub(super) fn has_ids(&self) -> bool {
        has_ids(self.in_files.fields())
    }

    pub(super) fn project<S: AsRef<str>>(&mut self, names: &[S]) -> Result<()> {
        let fields = self.table.fields();
        let names_of_table = FileFields::new(fields);
        let (mut output, mut seen) = (Vec::with_capacity(names.len()), vec![false; fields.len()]);
        for name in names {
            let index = names_of_table.require(name.as_ref())?;
            if seen.get_mut(index).is_some_and(|seen| std::mem::replace(seen, true)) {
                return Err(Error::invalid_argument(format!(
                    "the column '{}' is requested twice",
                    name.as_ref()
                )));
            }
            output.push(index);
        }
        self.output = output;
        self.update_needed()
    }

    pub(super) fn filter(&mut self, predicate: &BoundPredicate) -> Result<()> {
        if predicate.has_unknown() {
            return Err(Error::invalid_argument(
                "part of the predicate was not understood, so it cannot select rows",
            ));
        }
        let names: HashSet<&str> = self
            .partitions
            .iter()
            .filter_map(|index| self.table.fields().get(*index))
            .map(|f| f.name().as_str())
            .collect();
        let (file, row) =
            predicate.split(|column| matches!(column.path.parts(), [name] if names.contains(name.as_str())));
        (self.file_predicate, self.row_predicate) = (file, row);
        self.update_needed()
    }

    fn update_needed(&mut self) -> Result<()> {
        self.needed.clone_from(&self.output);
        self.extra.clear();
        let paths: Vec<&[String]> = self
            .row_predicate
            .iter()
            .flat_map(BoundPredicate::columns)
            .map(|column| column.path.parts())
            .collect();
        let mut of_column: HashMap<&str, Vec<&[String]>> = HashMap::new();
        for path in &paths {
            if let Some(name) = path.first() {
                of_column.entry(name).or_default().push(path);
            }
        }
        let table = FileFields::new(self.table.fields());
        let mut known: HashSet<usize> = self.needed.iter().copied().collect();
        for name in paths.iter().filter_map(|path| path.first()) {
            if self.row_tracking.is_some() && row_ids::fields().iter().any(|field| field.name() == name) {
                // The scan itself computes row ids, so they are not read as ordinary columns.
                continue;
            }
            let index = table.require(name)?;
            let is_new = known.insert(index);
            if let (true, Some(field), Some(in_files)) =
                (is_new, self.table.fields().get(index), self.in_files.fields().get(index))
            {
                let paths = of_column.get(field.name().as_str()).map_or(&[][..], Vec::as_slice);
                self.needed.push(index);
                self.extra.push(narrowed(field, in_files, paths));
            }
        }
        Ok(())
    }

    /// Adds row ids and commit versions to the output.
    pub(super) fn track_rows(&mut self, names: &MaterializedRowTracking) -> Result<()> {
        for field in row_ids::fields() {
            if match_name(self.table.fields(), field.name()) != NameMatch::None {
                let text = format!(
                    "rows cannot be returned with their ids, because the table has a column '{}'",
                    field.name()
                );
                return Err(Error::invalid_argument(text));
            }
        }
        self.row_tracking = Some(names.clone());
        Ok(())
    }

    /// Returns the schema of the scan's output.
    pub(super) fn output_schema(&self) -> SchemaRef {
        let schema = projected(&self.table, &self.output);
        match &self.row_tracking {
            None => schema,
            Some(_) => row_ids::with_row_ids(&schema),
        }
    }

    /// Returns the columns to read, beginning with the output columns.
    pub(super) fn needed(&self) -> Vec<NeededColumn> {
        let at = |index: &usize| {
            Some([self.table.fields().get(*index)?.clone(), self.in_files.fields().get(*index)?.clone()])
        };
        let fields = self.output.iter().filter_map(at).chain(self.extra.iter().cloned());
        let partitions: HashSet<usize> = self.partitions.iter().copied().collect();
        let column = |([field, in_files], index): ([FieldRef; 2], &usize)| {
            let is_partition = partitions.contains(index);
            NeededColumn { field, in_files, is_partition }
        };
        fields.zip(&self.needed).map(column).collect()
    }

    /// Returns an index of the table's columns by their names.
    pub(super) fn of_table(&self) -> FileFields<'_> {
        FileFields::new(self.table.fields())
    }

    /// Returns the field for each name in `path`, with the names and ids that the fields have in data files. Returns
    /// `None` if the table does not have the column, or if it is inside of a list or map. `table` must come from
    /// [`Columns::of_table`].
    pub(super) fn in_files(&self, table: &FileFields<'_>, path: &[String]) -> Option<Vec<FieldRef>> {
        let (mut fields, mut in_files) = (Some(self.table.fields()), Some(self.in_files.fields()));
        let mut found = Vec::with_capacity(path.len());
        for name in path {
            let fields_here = fields?;
            let index = match found.is_empty() {
                true => match table.find_name(name) {
                    NameMatch::One(index) => index,
                    _ => return None,
                },
                false => fields_here.find(name)?.0,
            };
            let (field, in_file) = (fields_here.get(index)?, in_files?.get(index)?);
            found.push(Arc::clone(in_file));
            (fields, in_files) = (inner_fields(field), inner_fields(in_file));
        }
        Some(found)
    }

    /// Returns the number of output columns, which come first among the needed columns.
    pub(super) fn output_len(&self) -> usize {
        self.output.len()
    }

    /// Returns a batch of one row with all partition columns. `value_of` returns the value of each column.
    pub(super) fn partition_batch(
        &self,
        mut value_of: impl FnMut(&FieldRef) -> Result<arrow::array::ArrayRef>,
    ) -> Result<RecordBatch> {
        let schema: Arc<Schema> = projected(&self.table, &self.partitions);
        let values = schema.fields().iter().map(&mut value_of).collect::<Result<Vec<_>>>()?;
        let nullable: Vec<_> =
            schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(nullable)), values, &options).map_err(|e| {
            Error::invalid_argument("the partition values do not match the schema").with_source(e)
        })
    }
}

/// Reduces `field` and `in_files` to the struct fields that lie on one of `paths`. Paths that do not begin with the
/// name of `field` are ignored.
fn narrowed(field: &FieldRef, in_files: &FieldRef, paths: &[&[String]]) -> [FieldRef; 2] {
    let below =
        paths.iter().filter(|path| path.first() == Some(field.name())).filter_map(|path| path.get(1..));
    let below: Vec<&[String]> = below.collect();
    match (field.data_type(), in_files.data_type()) {
        (DataType::Struct(fields), DataType::Struct(inner))
            if !is_variant(field) && below.iter().all(|path| !path.is_empty()) =>
        {
            let is_read = |(field, _): &(&FieldRef, &FieldRef)| {
                below.iter().any(|path| path.first() == Some(field.name()))
            };
            let kept = fields
                .iter()
                .zip(inner)
                .filter(is_read)
                .map(|(field, in_files)| narrowed(field, in_files, &below));
            let (fields, inner): (Vec<_>, Vec<_>) = kept.map(|[field, in_files]| (field, in_files)).unzip();
            let of = |field: &FieldRef, fields: Vec<FieldRef>| {
                Arc::new(field.as_ref().clone().with_data_type(DataType::Struct(Fields::from(fields))))
            };
            [of(field, fields), of(in_files, inner)]
        }
        _ => [Arc::clone(field), Arc::clone(in_files)],
    }
}

fn inner_fields(field: &FieldRef) -> Option<&Fields> {
    match field.data_type() {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

/// Returns whether two fields differ at most in names and metadata.
fn has_same_shape(a: &FieldRef, b: &FieldRef) -> bool {
    a.data_type().equals_datatype(b.data_type())
}

/// Returns the id of a field in Parquet files.
pub(super) fn field_id(field: &FieldRef) -> Option<&str> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY).map(String::as_str)
}

/// Returns whether any field, at any nesting level, has an id.
pub(super) fn has_ids(fields: &Fields) -> bool {
    let inside = |field: &FieldRef| match field.data_type() {
        DataType::Struct(fields) => has_ids(fields),
        DataType::List(inner) | DataType::Map(inner, _) => has_ids(&Fields::from(vec![Arc::clone(inner)])),
        _ => false,
    };
    fields.iter().any(|field| field_id(field).is_some() || inside(field))
}

/// Returns the index of the field `name`: the exact match, or else the only match that ignores case.
///
/// # Errors
/// `InvalidArgument` if no field or more than one field matches.
pub(super) fn find_field(fields: &Fields, name: &str) -> Result<usize> {
    FileFields::new(fields).require(name)
}

/// The result of looking up a field by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameMatch {
    None,
    One(usize),
    Many,
}

/// Finds `name` among `fields`: the exact match, or else the only match that ignores case.
pub(super) fn match_name(fields: &Fields, name: &str) -> NameMatch {
    FileFields::new(fields).find_name(name)
}

/// The fields of a file, or of a struct in it, with indexes to find them. Looking up all of them takes linear time,
/// even if there are many.
pub(super) struct FileFields<'a> {
    fields: &'a Fields,
    by_name: OnceCell<HashMap<&'a str, NameMatch>>,
    by_lower_name: OnceCell<HashMap<String, NameMatch>>,
    by_id: OnceCell<HashMap<&'a str, NameMatch>>,
    /// For each field, the number of leaf columns before it.
    leaves_before: OnceCell<Vec<usize>>,
}

impl<'a> FileFields<'a> {
    pub(super) fn new(fields: &'a Fields) -> Self {
        Self {
            fields,
            by_name: OnceCell::new(),
            by_lower_name: OnceCell::new(),
            by_id: OnceCell::new(),
            leaves_before: OnceCell::new(),
        }
    }

    /// Finds `field`. Returns the file's field and the number of leaf columns before it. `full_name` is used in
    /// messages.
    ///
    /// # Errors
    /// `CorruptData` if more than one field matches.
    pub(super) fn find(&self, field: &FieldRef, full_name: &str) -> Result<Option<(&'a FieldRef, usize)>> {
        match self.find_index(field) {
            NameMatch::None => Ok(None),
            NameMatch::Many => Err(Error::corrupt_data(format!(
                "more than one column of the file matches the name '{full_name}'"
            ))),
            NameMatch::One(index) => {
                let before = self.leaves_before().get(index).copied().unwrap_or_default();
                Ok(self.fields.get(index).map(|field| (field, before)))
            }
        }
    }

    /// Finds `field` by its id, or by its name if it has no id.
    fn find_index(&self, field: &FieldRef) -> NameMatch {
        let Some(id) = field_id(field) else { return self.find_name(field.name()) };
        let by_id = self.by_id.get_or_init(|| {
            let known = self.fields.iter().enumerate();
            indexed(known.filter_map(|(at, field)| Some((field_id(field)?, at))))
        });
        by_id.get(id).copied().unwrap_or(NameMatch::None)
    }

    /// Finds the field `name`: the exact match, or else the only match that ignores case.
    pub(super) fn find_name(&self, name: &str) -> NameMatch {
        let names = || self.fields.iter().enumerate().map(|(at, field)| (field.name().as_str(), at));
        if let Some(found) = self.by_name.get_or_init(|| indexed(names())).get(name) {
            return *found;
        }
        let by_lower_name =
            self.by_lower_name.get_or_init(|| indexed(names().map(|(name, at)| (name.to_lowercase(), at))));
        by_lower_name.get(&name.to_lowercase()).copied().unwrap_or(NameMatch::None)
    }

    /// Finds the field `name` as [`FileFields::find_name`] does, and returns its index.
    ///
    /// # Errors
    /// `InvalidArgument` if no field or more than one field matches.
    fn require(&self, name: &str) -> Result<usize> {
        match self.find_name(name) {
            NameMatch::One(index) => Ok(index),
            NameMatch::Many => {
                Err(Error::invalid_argument(format!("the column name '{name}' matches more than one column")))
            }
            NameMatch::None => {
                let known = self.fields.iter().map(|field| field.name().as_str());
                Err(Error::invalid_argument(format!("there is no column '{name}'"))
                    .with_hint(format!("the columns are: {}", nearest_first(name, known))))
            }
        }
    }

    fn leaves_before(&self) -> &[usize] {
        self.leaves_before.get_or_init(|| {
            let mut before = 0;
            let next = |field: &FieldRef| {
                let this = before;
                before += leaf_count(field.data_type());
                this
            };
            self.fields.iter().map(next).collect()
        })
    }
}

/// Returns an index of the numbered keys. A key that occurs more than once is mapped to [`NameMatch::Many`].
fn indexed<K: Eq + Hash>(keys: impl Iterator<Item = (K, usize)>) -> HashMap<K, NameMatch> {
    let mut index = HashMap::with_capacity(keys.size_hint().0);
    for (key, at) in keys {
        index.entry(key).and_modify(|found| *found = NameMatch::Many).or_insert(NameMatch::One(at));
    }
    index
}
