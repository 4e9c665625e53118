//! Decodes `add.stats`, a column of JSON texts, to Arrow.
//!
//! ```text
//! {"numRecords":2,"minValues":{"a":{"b":1},"c":"x"},…}
//!     ──>   numRecords  tightBounds  minValues.a.b  maxValues.a.b  nullCount.a.b
//! ```
//!
//! - Each text is read in one pass; values that were not requested are skipped without being parsed.
//! - A text that is not a JSON object yields NULL everywhere, as does a file without statistics.
//! - `tightBounds` is true unless the text says otherwise.

use super::leaf::{Leaf, has_bounds};
use super::scanner::{Member, Scanner};
use crate::error::{Error, Result};
use crate::predicate::ColumnPath;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use std::sync::Arc;

/// Returns the fields of the decoded statistics for the leaf columns `columns` of a table with schema
/// `schema`.
///
/// A leaf column is not a struct and is nested in structs only. Lists, maps and binary columns have only a
/// `nullCount`.
///
/// # Errors
/// `InvalidArgument` if a column is not a leaf column of `schema`.
pub fn stats_fields(schema: &Schema, columns: &[ColumnPath]) -> Result<Fields> {
    let mut counts = Tree::default();
    let mut bounds = Tree::default();
    for column in columns {
        let data_type = leaf_type(schema, column)?;
        counts.insert(column.parts(), DataType::Int64);
        if has_bounds(data_type) {
            bounds.insert(column.parts(), data_type.clone());
        }
    }
    let bounds = DataType::Struct(bounds.fields());
    Ok(Fields::from(vec![
        Field::new("numRecords", DataType::Int64, true),
        Field::new("tightBounds", DataType::Boolean, true),
        Field::new("minValues", bounds.clone(), true),
        Field::new("maxValues", bounds, true),
        Field::new("nullCount", DataType::Struct(counts.fields()), true),
    ]))
}

/// Decodes the statistics of files, one text per file, to a struct array of [`stats_fields`].
///
/// # Errors
/// `InvalidArgument` if a column is not a leaf column of `schema`. The content of a text never causes an
/// error.
pub fn decode_stats<'a>(
    stats: impl IntoIterator<Item = Option<&'a str>>,
    schema: &Schema,
    columns: &[ColumnPath],
) -> Result<StructArray> {
    let fields = stats_fields(schema, columns)?;
    let mut top = Node::new(&DataType::Struct(fields.clone()))?;
    let mut files = 0;
    for text in stats {
        if let Some(text) = text {
            read_file(text, &mut top);
        }
        top.end_file();
        files += 1;
    }
    let stats = top.finish(files)?;
    Ok(with_default_tight_bounds(stats.as_struct(), files))
}

/// Reads the values of `text` into `top`. A text that is not a JSON object adds no values.
fn read_file(text: &str, top: &mut Node) {
    let mut scanner = Scanner::new(text);
    if !scanner.is_object() || read_value(&mut scanner, top).is_none() || !scanner.is_at_end() {
        top.forget();
    }
}

pub(super) fn with_default_tight_bounds(stats: &StructArray, files: usize) -> StructArray {
    let (fields, mut arrays, nulls) = stats.clone().into_parts();
    let has_stats = arrays.first().cloned();
    if let (Some(tight), Some(records)) = (arrays.get_mut(1), has_stats) {
        let given = tight.as_boolean();
        let values = BooleanBuffer::collect_bool(files, |i| !given.is_valid(i) || given.value(i));
        let known = BooleanBuffer::collect_bool(files, |i| given.is_valid(i) || records.is_valid(i));
        *tight = Arc::new(BooleanArray::new(values, Some(known.into())));
    }
    StructArray::new(fields, arrays, nulls)
}

fn leaf_type<'s>(schema: &'s Schema, column: &ColumnPath) -> Result<&'s DataType> {
    let missing = || Error::invalid_argument(format!("{column} is not a leaf column"));
    let mut fields = Some(schema.fields());
    let mut found = None;
    for part in column.parts() {
        let (_, field) = fields.and_then(|fields| fields.find(part)).ok_or_else(missing)?;
        fields = match field.data_type() {
            DataType::Struct(children) => Some(children),
            _ => None,
        };
        found = Some(field.data_type());
    }
    found.filter(|data_type| !matches!(data_type, DataType::Struct(_))).ok_or_else(missing)
}

/// Nested fields in the order of their first occurrence.
#[derive(Default)]
struct Tree(Vec<(String, Branch)>);

enum Branch {
    Leaf(DataType),
    Inner(Tree),
}

impl Tree {
    fn insert(&mut self, path: &[String], data_type: DataType) {
        let Some((name, rest)) = path.split_first() else { return };
        let at = self.0.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            let branch = if rest.is_empty() {
                Branch::Leaf(data_type.clone())
            } else {
                Branch::Inner(Self::default())
            };
            self.0.push((name.clone(), branch));
            self.0.len() - 1
        });
        if let Some((_, Branch::Inner(inner))) = self.0.get_mut(at) {
            inner.insert(rest, data_type);
        }
    }

    fn fields(self) -> Fields {
        let field = |(name, branch)| match branch {
            Branch::Leaf(data_type) => Field::new(name, data_type, true),
            Branch::Inner(inner) => Field::new(name, DataType::Struct(inner.fields()), true),
        };
        self.0.into_iter().map(field).collect()
    }
}

/// A builder for the values of a field.
enum Node {
    Object { fields: Fields, children: Vec<Node> },
    Leaf(Leaf),
}

impl Node {
    fn new(data_type: &DataType) -> Result<Self> {
        match data_type {
            DataType::Struct(fields) => {
                let children = fields.iter().map(|f| Self::new(f.data_type())).collect::<Result<_>>()?;
                Ok(Self::Object { fields: fields.clone(), children })
            }
            leaf => Leaf::new(leaf).map(Self::Leaf),
        }
    }

    fn end_file(&mut self) {
        match self {
            Self::Object { children, .. } => children.iter_mut().for_each(Self::end_file),
            Self::Leaf(leaf) => leaf.end_file(),
        }
    }

    /// Discards the values read so far for the current file.
    fn forget(&mut self) {
        match self {
            Self::Object { children, .. } => children.iter_mut().for_each(Self::forget),
            Self::Leaf(leaf) => leaf.forget(),
        }
    }

    fn finish(&mut self, files: usize) -> Result<ArrayRef> {
        match self {
            Self::Leaf(leaf) => leaf.finish(),
            Self::Object { fields, children } => {
                let arrays =
                    children.iter_mut().map(|child| child.finish(files)).collect::<Result<Vec<_>>>()?;
                let array = StructArray::try_new_with_length(fields.clone(), arrays, None, files);
                array
                    .map(|a| Arc::new(a) as ArrayRef)
                    .map_err(|e| Error::schema_mismatch("statistics do not fit their type").with_source(e))
            }
        }
    }
}

/// Reads the value at the position of `scanner` into `node`; returns `None` if the text is malformed. If a
/// key occurs more than once, its last value wins.
fn read_value(scanner: &mut Scanner<'_>, node: &mut Node) -> Option<()> {
    let (fields, children) = match node {
        Node::Leaf(leaf) => {
            leaf.set(scanner.value()?);
            return Some(());
        }
        Node::Object { fields, children } => (fields, children),
    };
    for child in children.iter_mut() {
        child.forget();
    }
    if !scanner.is_object() {
        // The value should be an object and is not, so nothing is known.
        scanner.value()?;
        return Some(());
    }
    // Writers follow the order of the schema, so the next key usually belongs to the next field.
    let mut expected = 0;
    let mut member = scanner.enter()?;
    while let Member::Value(key) = member {
        let found = match fields.get(expected) {
            Some(field) if is_same(field.name(), &key) => Some(expected),
            _ => fields.iter().position(|field| is_same(field.name(), &key)),
        };
        match found.and_then(|at| children.get_mut(at).map(|child| (at, child))) {
            Some((at, child)) => {
                expected = at + 1;
                read_value(scanner, child)?;
            }
            None => {
                scanner.value()?;
            }
        }
        member = scanner.next()?;
    }
    Some(())
}

/// Returns whether two names are equal. Names are short, so a loop is faster than a call to `memcmp`.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| a == b)
}
