//! An entry of a stream's schema log, in the JSON format that the JVM connector uses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::{Metadata, Protocol, StructType, TableHeader};
use crate::snapshot::Snapshot;

/// The first line of each file of the log.
const FORMAT: &str = "v1";

/// A schema and a protocol with which a stream reads, and the version from which they apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) table_id: String,
    pub(super) delta_commit_version: u64,
    data_schema_json: String,
    partition_schema_json: String,
    source_metadata_path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table_configurations: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol_json: Option<String>,
    /// The number of the previous entry; -1 if there is no previous entry. `None` stands for the number directly before
    /// this entry's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous_metadata_seq_num: Option<i64>,
}

/// A `protocol` action, as a line of the table's log contains it.
#[derive(Serialize, Deserialize)]
struct ProtocolLine {
    protocol: Protocol,
}

impl Entry {
    pub(super) fn new(version: u64, protocol: &Protocol, metadata: &Metadata, source: &str) -> Result<Self> {
        let schema = metadata.schema()?;
        let field = |name: &String| schema.fields().iter().find(|field| field.name == *name).cloned();
        let partitions = StructType::try_new(metadata.partition_columns.iter().filter_map(field).collect())?;
        let protocol = serde_json::to_string(&ProtocolLine { protocol: protocol.clone() });
        Ok(Self {
            table_id: metadata.id.clone(),
            delta_commit_version: version,
            data_schema_json: schema.to_json(),
            partition_schema_json: partitions.to_json(),
            source_metadata_path: source.to_owned(),
            table_configurations: Some(metadata.configuration.clone()),
            protocol_json: Some(protocol.map_err(unwritable)?),
            previous_metadata_seq_num: None,
        })
    }

    /// Parses the content of a file.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and `Unsupported` for an unknown format.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let corrupt = || Error::corrupt_log("the file is not an entry of a log of schemas");
        let text = std::str::from_utf8(bytes).map_err(|error| corrupt().with_source(error))?;
        let (format, json) = text.split_once('\n').ok_or_else(corrupt)?;
        if format.trim() != FORMAT {
            return Err(Error::unsupported(format!(
                "the entry of a log of schemas has the unknown format '{}'",
                format.trim()
            )));
        }
        serde_json::from_str(json.lines().next().unwrap_or_default())
            .map_err(|error| corrupt().with_source(error))
    }

    /// Returns the content of the entry's file.
    pub(super) fn to_text(&self) -> Result<String> {
        Ok(format!("{FORMAT}\n{}", serde_json::to_string(self).map_err(unwritable)?))
    }

    /// Checks that the entry was written for `source`, the path that Spark gives to the source.
    pub(super) fn ensure_of(&self, source: &str) -> Result<()> {
        if self.source_metadata_path == source {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "the log of schemas belongs to the source {}, and not to {source}",
            self.source_metadata_path
        ))
        .with_hint(
            "use another schemaTrackingLocation, or tell the sources apart by streamingSourceTrackingId",
        ))
    }

    /// Returns the protocol and metadata of the entry. Fields that the entry lacks are taken from `table`.
    ///
    /// # Errors
    /// Returns `CorruptLog` for an entry that cannot be read.
    pub(super) fn header(&self, table: &Snapshot) -> Result<TableHeader> {
        let protocol = match &self.protocol_json {
            None => table.protocol().clone(),
            Some(json) => {
                let line: ProtocolLine = serde_json::from_str(json).map_err(|error| {
                    Error::corrupt_log("the log of schemas has an invalid protocol").with_source(error)
                })?;
                line.protocol
            }
        };
        let partitions = StructType::from_json(&self.partition_schema_json)?;
        let mut metadata = table.metadata().clone();
        metadata.id.clone_from(&self.table_id);
        metadata.schema_string.clone_from(&self.data_schema_json);
        metadata.partition_columns = partitions.fields().iter().map(|field| field.name.clone()).collect();
        if let Some(configuration) = &self.table_configurations {
            metadata.configuration.clone_from(configuration);
        }
        Ok(TableHeader::new(protocol, metadata))
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::invalid_argument("the schema of the stream cannot be written as JSON").with_source(error)
}
