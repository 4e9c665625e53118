//! The columns that a table's rows are clustered by. (PROTOCOL, "Clustered Table".)
//!
//! - The log names them by their physical names; a writer may spell a column as a name, or as the list of
//!   names that leads to it through structs.

use serde::Deserialize;

use super::schema::MappedSchema;
use crate::{Error, Result};

/// The metadata domain that says which columns these are.
pub const CLUSTERING_DOMAIN: &str = "delta.clustering";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    clustering_columns: Vec<Column>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Column {
    Name(String),
    Path(Vec<String>),
}

/// The paths, by logical names, of the columns that the `configuration` of the domain names.
///
/// # Errors
/// `CorruptLog` if it is no such configuration, or names a column that `schema` does not have.
pub fn clustering_columns(configuration: &str, schema: &MappedSchema) -> Result<Vec<Vec<String>>> {
    let bad = || {
        Error::corrupt_log(format!(
            "the metadata domain '{CLUSTERING_DOMAIN}' does not say which columns the table is clustered by"
        ))
    };
    let parsed: Configuration =
        serde_json::from_str(configuration).map_err(|error| bad().with_source(error))?;
    let logical = |column: Column| {
        let path = match column {
            Column::Name(name) => vec![name],
            Column::Path(path) => path,
        };
        let found = schema.logical_path(&path).filter(|path| !path.is_empty());
        found.ok_or_else(|| {
            Error::corrupt_log(format!(
                "the table is clustered by '{}', which is no column of it",
                path.join(".")
            ))
        })
    };
    parsed.clustering_columns.into_iter().map(logical).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::protocol::schema::{ColumnMappingMode, StructType};

    fn schema() -> MappedSchema {
        let metadata = |name: &str| format!(r#"{{"delta.columnMapping.physicalName":"{name}"}}"#);
        let json = format!(
            r#"{{"type":"struct","fields":[{{"name":"a","type":"long","nullable":true,"metadata":{}}},{{"name":"s","type":{{"type":"struct","fields":[{{"name":"b","type":"long","nullable":true,"metadata":{}}}]}},"nullable":true,"metadata":{}}}]}}"#,
            metadata("col-daadafd7-7c20-4697-98f8-bff70199b1f9"),
            metadata("b"),
            metadata("col-5abe0e80-cf57-47ac-9ffc-a861a3d1077e")
        );
        MappedSchema::new(StructType::from_json(&json).unwrap(), ColumnMappingMode::Name).unwrap()
    }

    #[test]
    fn the_example_by_logical_names() {
        let example = r#"{"clusteringColumns":["col-daadafd7-7c20-4697-98f8-bff70199b1f9", "col-5abe0e80-cf57-47ac-9ffc-a861a3d1077e"]}"#;
        assert_eq!(clustering_columns(example, &schema()).unwrap(), [["a"], ["s"]]);
        let paths = r#"{"clusteringColumns":[["col-5abe0e80-cf57-47ac-9ffc-a861a3d1077e","b"],["col-daadafd7-7c20-4697-98f8-bff70199b1f9"]],"x":1}"#;
        assert_eq!(clustering_columns(paths, &schema()).unwrap(), [vec!["s", "b"], vec!["a"]]);
        assert!(clustering_columns(r#"{"clusteringColumns":[]}"#, &schema()).unwrap().is_empty());
    }

    #[test]
    fn other_configurations_are_corrupt() {
        for bad in [
            "",
            "{}",
            r#"{"clusteringColumns":"a"}"#,
            r#"{"clusteringColumns":["a"]}"#,
            r#"{"clusteringColumns":[[]]}"#,
        ] {
            assert_eq!(
                clustering_columns(bad, &schema()).unwrap_err().kind(),
                ErrorKind::CorruptLog,
                "{bad}"
            );
        }
    }
}
