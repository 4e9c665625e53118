//! What a new table is to be.

use std::collections::BTreeMap;

use deltalog::WriteRequest;
use deltalog::protocol::StructType;
use deltalog::protocol::properties::spelled;
use deltalog::transaction::SaveMode;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// What a new table is to be beside its columns, as `deltalog.arguments.TableOptions` has it; of an existing
/// one it is checked.
#[derive(Clone, FromPyObject, Serialize, Deserialize)]
pub(crate) struct TableOptions {
    partition_by: Option<Vec<String>>,
    configuration: Option<BTreeMap<String, String>>,
    name: Option<String>,
    description: Option<String>,
}

impl TableOptions {
    /// With the properties that are meant: Spark hands on the names of options in small letters.
    pub(crate) fn of_spark(mut self) -> Self {
        self.configuration = self
            .configuration
            .map(|all| all.into_iter().map(|(name, value)| (spelled(&name).to_owned(), value)).collect());
        self
    }

    /// A write in `mode` of data of `schema`.
    pub(crate) fn request(self, schema: StructType, mode: SaveMode) -> WriteRequest {
        let Self { partition_by, configuration, name, description } = self;
        WriteRequest {
            schema,
            mode,
            partition_by,
            configuration: configuration.unwrap_or_default(),
            name,
            description,
        }
    }
}
