//! The content of the log that concerns the table as a whole: protocol, metadata and clustering columns.

use serde::{Deserialize, Serialize};

use super::{ColumnMappingMode, DomainMetadata, MappedSchema, Metadata, Protocol, clustering_domain};
use crate::error::Result;

/// The table-level actions of a commit that creates a table, replaces it, or changes its schema together with its rows.
///
/// With this information, other processes can write data files before the commit exists.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TableHeader {
    pub(crate) protocol: Protocol,
    pub(crate) metadata: Metadata,
    /// The logical paths of the columns by which the table is clustered. `None` leaves them unchanged.
    #[serde(default)]
    pub(crate) clustering: Option<Vec<Vec<String>>>,
}

impl TableHeader {
    /// Creates the header of a table whose clustering columns do not change.
    pub(crate) fn new(protocol: Protocol, metadata: Metadata) -> Self {
        Self { protocol, metadata, clustering: None }
    }

    /// Returns the metadata domain that lists the clustering columns, if the header has any. (Protocol: "Writer
    /// Requirements for Clustered Table".)
    ///
    /// # Errors
    /// `CorruptLog` for an invalid schema or mapping. `InvalidArgument` for a column that the schema does not have.
    pub(crate) fn clustering_domain(&self) -> Result<Option<DomainMetadata>> {
        let Some(columns) = &self.clustering else { return Ok(None) };
        let mode = ColumnMappingMode::of(&self.protocol, &self.metadata)?;
        let schema = MappedSchema::new(self.metadata.schema()?, mode)?;
        clustering_domain(columns, &schema).map(Some)
    }
}
