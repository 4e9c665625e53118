//! "Clustered Table": the clustering columns are returned by their logical names.

use deltalog::ErrorKind;
use serde_json::{Value, json};

use crate::crafted::{Crafted, Definition, field, fields};

fn mapped(name: &str, data_type: Value, physical: &str) -> Value {
    field(name, data_type, json!({"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}))
}

#[test]
fn the_newest_domain_counts_unless_it_is_removed() {
    let schema = fields(vec![
        mapped("a", json!("long"), "p1"),
        mapped("s", fields(vec![mapped("b", json!("long"), "p3")]), "p2"),
    ]);
    let mut table = Crafted::new(&Definition {
        schema: &schema,
        partition_columns: &[],
        reader_features: &["columnMapping"],
        writer_features: &["clustering", "domainMetadata"],
        configuration: json!({"delta.columnMapping.mode": "name"}),
    });
    table.commit();
    assert!(table.open().unwrap().clustering_columns().unwrap().is_empty());
    let domain = |configuration: &str, removed: bool| {
        json!({"domainMetadata": {
            "domain": "delta.clustering", "configuration": configuration, "removed": removed,
        }})
    };
    table.action(domain(r#"{"clusteringColumns":["p1"]}"#, false));
    table.commit();
    table.action(domain(r#"{"clusteringColumns":[["p2","p3"],["p1"]]}"#, false));
    table.commit();
    assert_eq!(table.open().unwrap().clustering_columns().unwrap(), [vec!["s", "b"], vec!["a"]]);
    table.action(domain(r#"{"clusteringColumns":["a"]}"#, false));
    table.commit();
    let error = table.open().unwrap().clustering_columns().unwrap_err();
    assert!(error.kind() == ErrorKind::CorruptLog && error.version() == Some(3), "{error}");
    table.action(domain("{}", true));
    table.commit();
    assert!(table.open().unwrap().clustering_columns().unwrap().is_empty());
}
