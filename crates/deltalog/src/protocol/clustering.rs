//! The columns by which a table's rows are clustered. (PROTOCOL, "Clustered Table".)
//!
//! - The log contains physical column names. Some writers record a column as one name, others as the list of names that
//!   leads to it through structs. This crate writes lists, as the JVM implementation does.

use serde::Deserialize;
use serde_json::json;

use super::action::DomainMetadata;
use super::schema::MappedSchema;
use crate::error::{Error, Result};

/// The metadata domain that lists the clustering columns.
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

/// Returns the logical paths of the columns that are listed in `configuration`, the configuration of the domain.
///
/// # Errors
/// `CorruptLog` if the configuration cannot be parsed or lists a column that `schema` does not have.
pub fn clustering_columns(configuration: &str, schema: &MappedSchema) -> Result<Vec<Vec<String>>> {
    let bad = || {
        Error::corrupt_log(format!(
            "the metadata domain '{CLUSTERING_DOMAIN}' is not a valid list of clustering columns"
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
                "the table is clustered by '{}', which is not a column of the table",
                path.join(".")
            ))
        })
    };
    parsed.clustering_columns.into_iter().map(logical).collect()
}

/// Returns the domain for a table that is clustered by the columns at the logical paths `columns`.
///
/// # Errors
/// `InvalidArgument` for a column that `schema` does not have.
pub fn clustering_domain(columns: &[Vec<String>], schema: &MappedSchema) -> Result<DomainMetadata> {
    let physical = |path: &Vec<String>| {
        schema.physical_path(path).ok_or_else(|| {
            Error::invalid_argument(format!(
                "the table cannot be clustered by '{}', which is not a column of the table",
                path.join(".")
            ))
        })
    };
    let columns = columns.iter().map(physical).collect::<Result<Vec<_>>>()?;
    let configuration = json!({ "clusteringColumns": columns, "domainName": CLUSTERING_DOMAIN });
    Ok(DomainMetadata {
        domain: CLUSTERING_DOMAIN.to_owned(),
        configuration: configuration.to_string(),
        removed: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::protocol::schema::{ColumnMappingMode, StructType};

    fn schema() -> MappedSchema {
        let field = |name: &str, data_type: &str, physical: &str| {
            let metadata = format!(r#"{{"delta.columnMapping.physicalName":"{physical}"}}"#);
            format!(r#"{{"name":"{name}","type":{data_type},"nullable":true,"metadata":{metadata}}}"#)
        };
        let of = |fields: &str| format!(r#"{{"type":"struct","fields":[{fields}]}}"#);
        let a = field("a", r#""long""#, "col-daadafd7-7c20-4697-98f8-bff70199b1f9");
        let inner = of(&field("b", r#""long""#, "b"));
        let outer = field("s", &inner, "col-5abe0e80-cf57-47ac-9ffc-a861a3d1077e");
        let json = of(&format!("{a},{outer}"));
        MappedSchema::new(StructType::from_json(&json).unwrap(), ColumnMappingMode::Name).unwrap()
    }

    #[test]
    fn protocol_example_maps_to_logical_names() {
        let example = concat!(
            r#"{"clusteringColumns":["col-daadafd7-7c20-4697-98f8-bff70199b1f9","#,
            r#" "col-5abe0e80-cf57-47ac-9ffc-a861a3d1077e"]}"#,
        );
        assert_eq!(clustering_columns(example, &schema()).unwrap(), [["a"], ["s"]]);
        let paths = concat!(
            r#"{"clusteringColumns":[["col-5abe0e80-cf57-47ac-9ffc-a861a3d1077e","b"],"#,
            r#"["col-daadafd7-7c20-4697-98f8-bff70199b1f9"]],"x":1}"#,
        );
        assert_eq!(clustering_columns(paths, &schema()).unwrap(), [vec!["s", "b"], vec!["a"]]);
        assert!(clustering_columns(r#"{"clusteringColumns":[]}"#, &schema()).unwrap().is_empty());
    }

    #[test]
    fn a_written_domain_is_read_back() {
        for columns in [vec![], vec![vec!["a".to_owned()], vec!["s".to_owned(), "b".to_owned()]]] {
            let domain = clustering_domain(&columns, &schema()).unwrap();
            assert_eq!(clustering_columns(&domain.configuration, &schema()).unwrap(), columns);
        }
        let error = clustering_domain(&[vec!["x".to_owned()]], &schema()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn invalid_configurations_are_corrupt() {
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
