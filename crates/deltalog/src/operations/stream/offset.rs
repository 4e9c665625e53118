//! The positions of a stream, and their representation in JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// The indexes of the position before the first file: in format version 1, and in format version 3.
const BASE: [i64; 2] = [-1, -100];

/// The indexes of the positions at which a stream with schema tracking stops because the schema changes. The JVM
/// connector uses the same indexes.
const SCHEMA_CHANGE: i64 = -20;
const AFTER_SCHEMA_CHANGE: i64 = -19;

/// A position within a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Index {
    /// Before the first file.
    Base,
    /// Before a schema change. The files of this version are read with the new schema.
    SchemaChange,
    /// The same position with a different offset, for engines that commit an offset only when they see the next one.
    AfterSchemaChange,
    /// After this file.
    File(u64),
    /// After the last file. This is the same position as the base of the next version, and is written in that form.
    End,
}

/// A position in a stream. All rows before it have been processed and are not read again.
///
/// [`Display`](fmt::Display) writes it as JSON, as the JVM connector does, and [`StreamOffset::parse`] reads this
/// JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOffset {
    table_id: String,
    version: u64,
    index: Index,
    is_initial: bool,
}

/// The JSON of an offset, with its fields in the order in which the JVM connector writes them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    source_version: i64,
    reservoir_id: String,
    reservoir_version: u64,
    index: i64,
    is_starting_version: bool,
}

impl StreamOffset {
    /// Creates the offset at position `index` of `version`.
    pub(super) fn new(table_id: &str, version: u64, index: Index, is_initial: bool) -> Self {
        let (version, index, is_initial) = match index {
            Index::End => (version + 1, Index::Base, false),
            index => (version, index, is_initial),
        };
        Self { table_id: table_id.to_owned(), version, index, is_initial }
    }

    /// Parses an offset.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a string that is not an offset, and `Unsupported` for an offset in an unknown
    /// version of the format.
    pub fn parse(text: &str) -> Result<Self> {
        let written: Written = serde_json::from_str(text).map_err(|error| {
            Error::invalid_argument(format!("this is not an offset of a stream: {text}"))
                .with_source(error)
                .with_hint(
                    "pass an offset that a stream of a table has returned; in Spark, start the query with a checkpoint \
                     that no other source has used",
                )
        })?;
        if !matches!(written.source_version, 1 | 3) {
            return Err(Error::unsupported(format!(
                "the offset has the unknown version {}: {text}",
                written.source_version
            ))
            .with_hint("go on with the release that has written it, or begin with a new checkpoint"));
        }
        let index = match written.index {
            index if BASE.contains(&index) => Index::Base,
            SCHEMA_CHANGE => Index::SchemaChange,
            AFTER_SCHEMA_CHANGE => Index::AfterSchemaChange,
            index => Index::File(u64::try_from(index).map_err(|error| {
                Error::invalid_argument(format!("the offset has an impossible index: {text}"))
                    .with_source(error)
            })?),
        };
        Ok(Self {
            table_id: written.reservoir_id,
            version: written.reservoir_version,
            index,
            is_initial: written.is_starting_version,
        })
    }

    /// Returns the version to which the offset belongs.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the id of the table.
    pub fn table_id(&self) -> &str {
        &self.table_id
    }

    /// Returns whether the offset is within the snapshot with which the stream began.
    pub fn is_initial(&self) -> bool {
        self.is_initial
    }

    pub(super) fn index(&self) -> Index {
        self.index
    }

    /// Checks that the offset belongs to the table with the id `table_id`.
    ///
    /// # Errors
    /// Returns `TableReplaced` if it belongs to another table.
    pub(super) fn ensure_of(&self, table_id: &str) -> Result<()> {
        if self.table_id == table_id {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TableReplaced,
            format!(
                "the offset belongs to the table with the id {}, but the table here has the id {table_id}",
                self.table_id
            ),
        )
        .with_hint("begin with a new checkpoint, or read the table to which the offset belongs"))
    }
}

impl fmt::Display for StreamOffset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = Written {
            // Readers that only know format 1 would misunderstand these indexes, so offsets that contain them have
            // format 3.
            source_version: match self.index {
                Index::SchemaChange | Index::AfterSchemaChange => 3,
                Index::Base | Index::File(_) | Index::End => 1,
            },
            reservoir_id: self.table_id.clone(),
            reservoir_version: self.version,
            index: match self.index {
                Index::File(index) => i64::try_from(index).map_err(|_| fmt::Error)?,
                Index::SchemaChange => SCHEMA_CHANGE,
                Index::AfterSchemaChange => AFTER_SCHEMA_CHANGE,
                Index::Base | Index::End => BASE[0],
            },
            is_starting_version: self.is_initial,
        };
        out.write_str(&serde_json::to_string(&written).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The JVM connector 4.4 wrote the expected strings.
    #[test]
    fn offsets_are_written_as_the_jvm_connector_writes_them() {
        for text in [
            r#"{"sourceVersion":1,"reservoirId":"9b1f","reservoirVersion":3,"index":-1,"isStartingVersion":false}"#,
            r#"{"sourceVersion":1,"reservoirId":"9b1f","reservoirVersion":0,"index":119,"isStartingVersion":true}"#,
            r#"{"sourceVersion":3,"reservoirId":"9b1f","reservoirVersion":5,"index":-20,"isStartingVersion":false}"#,
            r#"{"sourceVersion":3,"reservoirId":"9b1f","reservoirVersion":5,"index":-19,"isStartingVersion":false}"#,
        ] {
            assert_eq!(StreamOffset::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_end_of_a_version_is_the_base_of_the_next() {
        let end = StreamOffset::new("id", 4, Index::End, true);
        assert_eq!(end, StreamOffset::new("id", 5, Index::Base, false));
    }

    #[test]
    fn strings_that_are_not_offsets_are_refused() {
        let offset = |version: i64, index: i64| {
            let table = r#""reservoirId":"a","reservoirVersion":3"#;
            format!(r#"{{"sourceVersion":{version},{table},"index":{index},"isStartingVersion":false}}"#)
        };
        let kind = |text: &str| StreamOffset::parse(text).unwrap_err().kind();
        assert_eq!(kind("{}"), ErrorKind::InvalidArgument);
        assert_eq!(kind("0"), ErrorKind::InvalidArgument);
        assert_eq!(kind(&offset(1, -7)), ErrorKind::InvalidArgument);
        assert_eq!(kind(&offset(2, 0)), ErrorKind::Unsupported);
        assert_eq!(
            StreamOffset::parse(&offset(3, -100)).unwrap(),
            StreamOffset::parse(&offset(1, -1)).unwrap()
        );
    }
}
