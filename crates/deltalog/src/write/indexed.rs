//! Selects the columns that have statistics, according to the table properties `delta.dataSkippingNumIndexedCols` and
//! `delta.dataSkippingStatsColumns`.
//!
//! - The list of column names takes precedence over the number of columns.
//! - A listed name that is missing from the schema is ignored, because the column may have been dropped after the
//!   property was set.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Fields, Schema};

use crate::error::{Error, Result};
use crate::expression::predicate::{ColumnPath, FieldNames};
use crate::protocol::MappedSchema;
use crate::values::stats::{IndexedColumns, indexed};

/// The number of leaf columns that have statistics if the table sets neither property.
const DEFAULT_COUNT: usize = 32;
const COUNT: &str = "delta.dataSkippingNumIndexedCols";
pub(crate) const NAMES: &str = "delta.dataSkippingStatsColumns";

/// Returns the physical paths of the columns that get statistics: the columns of `schema` that the table properties
/// `configuration` select, and the clustering columns, whose logical paths are `clustering`.
///
/// # Errors
/// Returns `CorruptLog`, which names the property, if its value is invalid.
pub(super) fn indexed_columns(
    configuration: &BTreeMap<String, String>,
    schema: &MappedSchema,
    clustering: &[Vec<String>],
) -> Result<IndexedColumns> {
    let physical = |path: &[String]| schema.physical_path(path).map(ColumnPath::new);
    let selected = match selected_columns(configuration, schema.arrow())? {
        IndexedColumns::Chosen(paths) => {
            IndexedColumns::Chosen(paths.iter().filter_map(|path| physical(path.parts())).collect())
        }
        others => others,
    };
    if clustering.is_empty() {
        return Ok(selected);
    }
    let selected = indexed(schema.physical_arrow(), &selected).into_iter().map(|(path, _)| path);
    Ok(IndexedColumns::Chosen(selected.chain(clustering.iter().filter_map(|path| physical(path))).collect()))
}

/// Returns the columns that `configuration` selects, by their logical names. Unlike [`indexed_columns`], does not
/// include the clustering columns.
pub(crate) fn selected_columns(
    configuration: &BTreeMap<String, String>,
    schema: &Schema,
) -> Result<IndexedColumns> {
    let invalid = |property: &str, value: &str| {
        Error::corrupt_log(format!("the table property '{property}' has the invalid value '{value}'"))
            .with_hint("set the property to a valid value")
    };
    if let Some(names) = configuration.get(NAMES) {
        let paths = parse_names(names).ok_or_else(|| invalid(NAMES, names))?;
        let known = FieldNames::new(schema.fields());
        let resolved = |path: &Vec<String>| resolve(schema.fields(), &known, path);
        return Ok(IndexedColumns::Chosen(paths.iter().filter_map(resolved).collect()));
    }
    let Some(count) = configuration.get(COUNT) else { return Ok(IndexedColumns::First(DEFAULT_COUNT)) };
    match count.trim().parse::<i64>() {
        Ok(-1) => Ok(IndexedColumns::All),
        Ok(count) => {
            usize::try_from(count).map(IndexedColumns::First).map_err(|_| invalid(COUNT, &count.to_string()))
        }
        Err(_) => Err(invalid(COUNT, count)),
    }
}

/// Splits a list such as `` a, b.c, `d.e`.`f``g` `` into names. Returns `None` if a quote is not closed or a name is
/// empty.
pub(crate) fn parse_names(text: &str) -> Option<Vec<Vec<String>>> {
    let mut paths = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut names = Vec::new();
        loop {
            let (name, after) = parse_name(rest.trim_start())?;
            names.push(name);
            rest = after.trim_start();
            match rest.strip_prefix('.') {
                Some(more) => rest = more,
                None => break,
            }
        }
        paths.push(names);
        match rest.strip_prefix(',') {
            Some(more) if more.trim().is_empty() => return None,
            Some(more) => rest = more,
            None if rest.is_empty() => {}
            None => return None,
        }
    }
    Some(paths)
}

fn parse_name(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('`') else {
        let (name, after) = text.split_at(text.find(['.', ',', '`']).unwrap_or(text.len()));
        let name = name.trim_end();
        return (!name.is_empty()).then(|| (name.to_owned(), after));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('`')?;
        name.push_str(part);
        match after.strip_prefix('`') {
            Some(more) => {
                name.push('`');
                rest = more;
            }
            None => return (!name.is_empty()).then_some((name, after)),
        }
    }
}

/// Returns `path` as the schema spells it; `None` if the schema does not contain it. `known` is the index of the
/// names of `fields`.
pub(super) fn resolve(fields: &Fields, known: &FieldNames, path: &[String]) -> Option<ColumnPath> {
    let mut names = Vec::new();
    let mut fields = Some((fields, known));
    for name in path {
        let (of, known) = fields?;
        let place = known.find(name)?;
        let field = of.get(place)?;
        names.push(field.name().clone());
        fields = match field.data_type() {
            DataType::Struct(children) => known.inside(place, children).map(|known| (children, known)),
            _ => None,
        };
    }
    Some(ColumnPath::new(names))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use crate::protocol::{ColumnMappingMode, StructType};

    use super::*;

    fn read(property: &str, value: &str) -> Result<IndexedColumns> {
        let inner = Fields::from(vec![
            Field::new("Leaf.x", DataType::Int32, true),
            Field::new("ti`ck", DataType::Int32, true),
        ]);
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int32, true),
            Field::new("S", DataType::Struct(inner), true),
        ]);
        selected_columns(&BTreeMap::from([(property.to_owned(), value.to_owned())]), &schema)
    }

    #[test]
    fn a_count_selects_the_first_columns() {
        assert_eq!(read("other", "1").unwrap(), IndexedColumns::First(32));
        assert_eq!(read(COUNT, "-1").unwrap(), IndexedColumns::All);
        assert_eq!(read(COUNT, "0").unwrap(), IndexedColumns::First(0));
        for bad in ["-2", "many", ""] {
            let error = read(COUNT, bad).unwrap_err();
            assert!(error.to_string().contains(COUNT), "{error}");
        }
    }

    /// Clustering columns always have statistics. (PROTOCOL, "Writer Requirements for Clustered Table".)
    #[test]
    fn clustering_columns_always_have_statistics() {
        let field = |name: &str| {
            let metadata = format!(r#"{{"delta.columnMapping.physicalName":"{name}1"}}"#);
            format!(r#"{{"name":"{name}","type":"long","nullable":true,"metadata":{metadata}}}"#)
        };
        let json = format!(r#"{{"type":"struct","fields":[{},{},{}]}}"#, field("a"), field("b"), field("c"));
        let schema =
            MappedSchema::new(StructType::from_json(&json).unwrap(), ColumnMappingMode::Name).unwrap();
        let select = |property: &str, value: &str, clustering: &[&str]| {
            let configuration = BTreeMap::from([(property.to_owned(), value.to_owned())]);
            let clustering: Vec<_> = clustering.iter().map(|name| vec![(*name).to_owned()]).collect();
            let columns = indexed_columns(&configuration, &schema, &clustering).unwrap();
            let found = indexed(schema.physical_arrow(), &columns).into_iter();
            found.map(|(path, _)| path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(select(COUNT, "1", &[]), ["a1"]);
        assert_eq!(select(COUNT, "1", &["c"]), ["a1", "c1"]);
        assert_eq!(select(COUNT, "0", &["b"]), ["b1"]);
        assert_eq!(select(NAMES, "b", &["b", "a"]), ["a1", "b1"]);
        assert_eq!(select(COUNT, "-1", &["c"]), ["a1", "b1", "c1"]);
    }

    #[test]
    fn names_select_columns() {
        let chosen = |paths: &[&[&str]]| {
            IndexedColumns::Chosen(paths.iter().map(|path| ColumnPath::new(path.iter().copied())).collect())
        };
        assert_eq!(
            read(NAMES, "a, s.`leaf.x`,S . `ti``ck`, gone, a.b").unwrap(),
            chosen(&[&["a"], &["S", "Leaf.x"], &["S", "ti`ck"]])
        );
        assert_eq!(read(NAMES, "s").unwrap(), chosen(&[&["S"]]));
        assert_eq!(read(NAMES, " ").unwrap(), chosen(&[]));
        for bad in ["a,", ",a", "`a", "a..b", "a b`c`", "``"] {
            assert!(read(NAMES, bad).is_err(), "{bad}");
        }
    }
}
