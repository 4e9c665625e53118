//! The descriptor of a deletion vector, part of `add` and `remove`. (PROTOCOL, "Deletion Vector Descriptor
//! Schema".)

use serde::{Deserialize, Serialize};

/// Where a deletion vector is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeletionVectorStorage {
    /// In a file of the table, named after a UUID.
    #[serde(rename = "u")]
    UuidRelativePath,
    /// In the log itself.
    #[serde(rename = "i")]
    Inline,
    /// In a file with an absolute path.
    #[serde(rename = "p")]
    AbsolutePath,
}

impl DeletionVectorStorage {
    /// What the log's letter means.
    pub fn parse(letter: &str) -> Option<Self> {
        [Self::UuidRelativePath, Self::Inline, Self::AbsolutePath]
            .into_iter()
            .find(|storage| letter.chars().eq([storage.letter()]))
    }

    /// The letter that the log uses.
    pub fn letter(self) -> char {
        match self {
            Self::UuidRelativePath => 'u',
            Self::Inline => 'i',
            Self::AbsolutePath => 'p',
        }
    }
}

/// Which rows of a data file are deleted, by reference to a bitmap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVectorDescriptor {
    /// How to read `path_or_inline_dv`.
    pub storage_type: DeletionVectorStorage,
    /// Prefix and Z85 of a UUID, Z85 of the bitmap, or an absolute path.
    pub path_or_inline_dv: String,
    /// Where the bitmap begins in its file, in bytes; none when inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Size of the bitmap in bytes, before Z85.
    pub size_in_bytes: i32,
    /// How many rows the vector removes.
    pub cardinality: i64,
}

impl DeletionVectorDescriptor {
    /// What tells two vectors of one data file apart. (PROTOCOL, "Derived Fields".)
    pub fn unique_id(&self) -> String {
        let letter = self.storage_type.letter();
        match self.offset {
            None => format!("{letter}{}", self.path_or_inline_dv),
            Some(offset) => format!("{letter}{}@{offset}", self.path_or_inline_dv),
        }
    }
}
