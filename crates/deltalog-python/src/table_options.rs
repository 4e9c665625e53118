//! The options of a new table.

use std::collections::BTreeMap;

use deltalog::engine::commit::SaveMode;
use deltalog::engine::protocol::StructType;
use deltalog::engine::protocol::properties::spelled;
use deltalog::{TableDefinition, WriteRequest};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// The properties of a new table other than its columns: `deltalog.arguments.TableOptions` in Python.
///
/// If the table exists, these options are compared with its properties.
#[derive(Clone, Default, FromPyObject, Serialize, Deserialize)]
pub(crate) struct TableOptions {
    partition_by: Option<Vec<String>>,
    configuration: Option<BTreeMap<String, String>>,
    name: Option<String>,
    description: Option<String>,
}

impl TableOptions {
    /// Restores the spelling of property names, because Spark passes the names of options in lower case.
    pub(crate) fn of_spark(mut self) -> Self {
        self.configuration = self
            .configuration
            .map(|all| all.into_iter().map(|(name, value)| (spelled(&name).to_owned(), value)).collect());
        self
    }

    /// Returns the definition of a table with these columns.
    pub(crate) fn definition(self, schema: StructType) -> TableDefinition {
        let Self { partition_by, configuration, name, description } = self;
        let mut definition = TableDefinition::new(schema);
        definition.partition_columns = partition_by.unwrap_or_default();
        definition.configuration = configuration.unwrap_or_default();
        (definition.name, definition.description) = (name, description);
        definition
    }

    /// Returns a request to write data of `schema` in `mode`.
    pub(crate) fn request(self, schema: StructType, mode: SaveMode) -> WriteRequest {
        let Self { partition_by, configuration, name, description } = self;
        let mut request = WriteRequest::new(schema, mode);
        request.partition_by = partition_by;
        request.configuration = configuration.unwrap_or_default();
        (request.name, request.description) = (name, description);
        request
    }
}
