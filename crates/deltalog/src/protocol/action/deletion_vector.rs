//! The descriptor of a deletion vector, which is part of `add` and `remove` actions. (PROTOCOL, "Deletion Vector
//! Descriptor Schema".)

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The place where a deletion vector is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeletionVectorStorage {
    /// A file in the table's directory, whose name is made from a UUID.
    #[serde(rename = "u")]
    UuidRelativePath,
    /// The log itself: the vector is inline.
    #[serde(rename = "i")]
    Inline,
    /// A file with an absolute path.
    #[serde(rename = "p")]
    AbsolutePath,
}

impl DeletionVectorStorage {
    /// Returns the kind of storage for a letter in the log, or `None` for an unknown letter.
    pub fn parse(letter: &str) -> Option<Self> {
        [Self::UuidRelativePath, Self::Inline, Self::AbsolutePath]
            .into_iter()
            .find(|storage| letter.chars().eq([storage.letter()]))
    }

    /// Returns the letter for this kind of storage in the log.
    pub fn letter(self) -> char {
        match self {
            Self::UuidRelativePath => 'u',
            Self::Inline => 'i',
            Self::AbsolutePath => 'p',
        }
    }
}

/// A reference to the bitmap of a data file's deleted rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeletionVectorDescriptor {
    /// How `path_or_inline_dv` is to be interpreted.
    pub storage_type: DeletionVectorStorage,
    /// One of: an optional prefix followed by a UUID in Z85; the bitmap itself in Z85; or an absolute path.
    pub path_or_inline_dv: String,
    /// The offset of the bitmap in its file, in bytes; `None` if it is inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// The size of the bitmap in bytes, before Z85 encoding.
    pub size_in_bytes: i32,
    /// The number of rows that the vector marks as deleted.
    pub cardinality: i64,
}

impl DeletionVectorDescriptor {
    /// Returns the id that distinguishes the deletion vectors of one data file. (PROTOCOL, "Derived Fields".)
    pub fn unique_id(&self) -> String {
        let mut id = String::new();
        let letter = self.storage_type.letter();
        write_unique_id(&mut id, letter.encode_utf8(&mut [0; 4]), &self.path_or_inline_dv, self.offset);
        id
    }
}

/// Appends the unique id of a vector to `out`. (PROTOCOL, "Derived Fields".)
pub(crate) fn write_unique_id(
    out: &mut String,
    storage_type: &str,
    path_or_inline_dv: &str,
    offset: Option<i32>,
) {
    out.push_str(storage_type);
    out.push_str(path_or_inline_dv);
    if let Some(offset) = offset {
        let _ = write!(out, "@{offset}");
    }
}
