//! Decodes `add.stats`, a column of JSON strings, to Arrow columns.
//!
//! ```text
//! {"numRecords":2,"minValues":{"a":{"b":1},"c":"x"},…}
//!     ──>   numRecords  tightBounds  minValues.a.b  maxValues.a.b  nullCount.a.b
//! ```
//!
//! - Each JSON text is read in one pass. Values that were not requested are skipped without being parsed.
//! - A text that is not a JSON object gives NULL in all columns, and so does a file without statistics.
//! - `tightBounds` is true unless the text says otherwise.

use super::json::Side;
use super::leaf::{Leaf, has_bounds};
use super::origin::{MARK, RULES};
use super::scanner::{Member, Scanner};
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::runtime::by_name::ByName;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type, Schema};
use arrow::error::ArrowError;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the fields of the decoded statistics of `columns`, leaf columns of a table with the schema `schema`.
///
/// A leaf column is not a struct itself, and is nested in structs only. Lists, maps and binary columns only have a
/// `nullCount`.
///
/// # Errors
/// `InvalidArgument` if a column is not a leaf column of `schema`.
pub fn stats_fields(schema: &Schema, columns: &[ColumnPath]) -> Result<Fields> {
    let mut counts = Tree::default();
    let mut bounds = Tree::default();
    let by_name = ByName::new(schema.fields().len(), |at| Some(schema.fields().get(at)?.name().as_str()));
    for column in columns {
        let first = column.parts().first().and_then(|name| by_name.find(name));
        let data_type = leaf_type(first.and_then(|at| schema.fields().get(at)), column)?;
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

/// Decodes the statistics of files, one JSON text per file, to a struct array whose fields are [`stats_fields`].
///
/// # Errors
/// `InvalidArgument` if a column is not a leaf column of `schema`. The content of a text never causes an error.
pub fn decode_stats<'a>(
    stats: impl IntoIterator<Item = Option<&'a str>>,
    schema: &Schema,
    columns: &[ColumnPath],
) -> Result<StructArray> {
    decode_stats_with_origin(stats, schema, columns).map(|(stats, _)| stats)
}

/// Decodes statistics like [`decode_stats`]. Also returns, for each file, whether this crate has computed them.
///
/// # Errors
/// Returns the same errors as [`decode_stats`].
pub(crate) fn decode_stats_with_origin<'a>(
    stats: impl IntoIterator<Item = Option<&'a str>>,
    schema: &Schema,
    columns: &[ColumnPath],
) -> Result<(StructArray, BooleanArray)> {
    let fields = stats_fields(schema, columns)?;
    let mark = Arc::new(Field::new(MARK, DataType::Int64, true));
    let mut top = Node::top(&fields.iter().cloned().chain([mark]).collect())?;
    let mut files = 0;
    for text in stats {
        if let Some(text) = text {
            read_file(text, &mut top);
        }
        top.end_file();
        files += 1;
    }
    let (_, mut arrays, nulls) = top.finish(files)?.as_struct().clone().into_parts();
    let marks = arrays.pop();
    let is_own =
        marks.iter().flat_map(|marks| marks.as_primitive::<Int64Type>()).map(|mark| mark == Some(RULES));
    let is_own = BooleanArray::from(is_own.collect::<Vec<_>>());
    let stats = StructArray::try_new_with_length(fields, arrays, nulls, files).map_err(unfit)?;
    Ok((with_default_tight_bounds(&stats, files), is_own))
}

/// Reads the values of `text` into `top`. If the text is not a JSON object, it adds no values.
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

/// Returns the type of a column, which is the field `first` or is nested inside it.
fn leaf_type<'s>(first: Option<&'s FieldRef>, column: &ColumnPath) -> Result<&'s DataType> {
    let missing = || Error::invalid_argument(format!("{column} is not a leaf column"));
    let mut found = first;
    for part in column.parts().iter().skip(1) {
        found = match found.map(|field| field.data_type()) {
            Some(DataType::Struct(children)) => children.find(part).map(|(_, field)| field),
            _ => None,
        };
    }
    found
        .map(|field| field.data_type())
        .filter(|data_type| !matches!(data_type, DataType::Struct(_)))
        .ok_or_else(missing)
}

fn unfit(error: ArrowError) -> Error {
    Error::schema_mismatch("statistics do not fit their type").with_source(error)
}

/// Nested fields, in the order in which they first occur.
#[derive(Default)]
struct Tree {
    branches: Vec<(String, Branch)>,
    /// The index of each nested field, by name. It is needed because tables may have many thousand columns.
    by_name: HashMap<String, usize>,
}

enum Branch {
    Leaf(DataType),
    Inner(Tree),
}

impl Tree {
    fn insert(&mut self, path: &[String], data_type: DataType) {
        let Some((name, rest)) = path.split_first() else { return };
        let at = self.by_name.get(name).copied().unwrap_or_else(|| {
            let branch = if rest.is_empty() {
                Branch::Leaf(data_type.clone())
            } else {
                Branch::Inner(Self::default())
            };
            self.by_name.insert(name.clone(), self.branches.len());
            self.branches.push((name.clone(), branch));
            self.branches.len() - 1
        });
        if let Some((_, Branch::Inner(inner))) = self.branches.get_mut(at) {
            inner.insert(rest, data_type);
        }
    }

    fn fields(self) -> Fields {
        let field = |(name, branch)| match branch {
            Branch::Leaf(data_type) => Field::new(name, data_type, true),
            Branch::Inner(inner) => Field::new(name, DataType::Struct(inner.fields()), true),
        };
        self.branches.into_iter().map(field).collect()
    }
}

/// Builds the values of a field.
enum Node {
    Object {
        fields: Fields,
        children: Vec<Node>,
        /// The index of each field, by name. It is used for objects with many fields.
        by_name: HashMap<String, usize>,
    },
    Leaf(Leaf),
}

/// The maximum number of fields of an object whose names are compared one after another. Above it, an index is used.
const MOST_COMPARED: usize = 16;

impl Node {
    /// Creates a builder for complete statistics.
    fn top(fields: &Fields) -> Result<Self> {
        Self::object(fields, |field| match field.name().as_str() {
            "maxValues" => Side::Max,
            _ => Side::Min,
        })
    }

    fn new(data_type: &DataType, side: Side) -> Result<Self> {
        match data_type {
            DataType::Struct(fields) => Self::object(fields, |_| side),
            leaf => Leaf::new(leaf, side).map(Self::Leaf),
        }
    }

    fn object(fields: &Fields, side: impl Fn(&Field) -> Side) -> Result<Self> {
        let child = |field: &Arc<Field>| Self::new(field.data_type(), side(field));
        let by_name = match fields.len() > MOST_COMPARED {
            true => fields.iter().enumerate().map(|(at, field)| (field.name().clone(), at)).collect(),
            false => HashMap::new(),
        };
        Ok(Self::Object {
            fields: fields.clone(),
            children: fields.iter().map(child).collect::<Result<_>>()?,
            by_name,
        })
    }

    fn end_file(&mut self) {
        match self {
            Self::Object { children, .. } => children.iter_mut().for_each(Self::end_file),
            Self::Leaf(leaf) => leaf.end_file(),
        }
    }

    /// Discards the values that were read so far for the current file.
    fn forget(&mut self) {
        match self {
            Self::Object { children, .. } => children.iter_mut().for_each(Self::forget),
            Self::Leaf(leaf) => leaf.forget(),
        }
    }

    fn finish(&mut self, files: usize) -> Result<ArrayRef> {
        match self {
            Self::Leaf(leaf) => leaf.finish(),
            Self::Object { fields, children, .. } => {
                let arrays =
                    children.iter_mut().map(|child| child.finish(files)).collect::<Result<Vec<_>>>()?;
                let array = StructArray::try_new_with_length(fields.clone(), arrays, None, files);
                array.map(|a| Arc::new(a) as ArrayRef).map_err(unfit)
            }
        }
    }
}

/// Reads the value at the position of `scanner` into `node`. Returns `None` if the text is malformed. If a key occurs
/// more than once, its last value counts.
fn read_value(scanner: &mut Scanner<'_>, node: &mut Node) -> Option<()> {
    let (fields, children, by_name) = match node {
        Node::Leaf(leaf) => {
            leaf.set(scanner.value()?);
            return Some(());
        }
        Node::Object { fields, children, by_name } => (fields, children, by_name),
    };
    for child in children.iter_mut() {
        child.forget();
    }
    if !scanner.is_object() {
        // The value should be an object but is not, so the statistics inside it are unknown.
        scanner.value()?;
        return Some(());
    }
    // Writers follow the order of the schema, so the next key usually belongs to the next field.
    let mut expected = 0;
    let mut member = scanner.enter()?;
    while let Member::Value(key) = member {
        let found = match fields.get(expected) {
            Some(field) if is_same(field.name(), &key) => Some(expected),
            _ if by_name.is_empty() => fields.iter().position(|field| is_same(field.name(), &key)),
            _ => by_name.get(key.as_ref()).copied(),
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

/// Returns whether two names are equal. The names are short, so a loop takes less time than a call to `memcmp`.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| a == b)
}
