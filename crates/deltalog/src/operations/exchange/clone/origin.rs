//! Records where a copied file comes from, in a tag of the copy's `add` action. (PROTOCOL, "Add File and Remove
//! File": `tags`.)
//!
//! ```text
//!   deltalog.clonedFrom: <id of the source> <path in its log> <id of its vector> <id of the vector's copy>
//! ```
//!
//! - By the tag, a repeated clone recognizes the data files that it has already copied. Data files are never changed,
//!   so a path in a table always has the same content.
//! - The deletion vector of a file may have changed since, in the source or in the clone. The tag therefore also
//!   contains the ids of deletion vectors that are stored in files; `-` stands for all other vectors.

use crate::protocol::{Add, DeletionVectorDescriptor, DeletionVectorStorage};

/// The name of the tag.
pub(super) const TAG: &str = "deltalog.clonedFrom";

/// The origin of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The original data file: the id of its table, and its path in that table.
    pub(super) file: (String, String),
    /// The id of the original's deletion vector in the source.
    pub(super) vector: String,
    /// The id of the copy of that deletion vector.
    pub(super) copy: String,
}

impl Origin {
    /// Returns the tag for the copy of a file of the table `source`.
    pub(super) fn new(source: &str, file: &Add, copy: Option<&DeletionVectorDescriptor>) -> Self {
        Self {
            file: (source.to_owned(), file.path.clone()),
            vector: vector_id(file.deletion_vector.as_ref()),
            copy: vector_id(copy),
        }
    }

    /// Returns the origin of a file, if it is a copy.
    pub(super) fn of(file: &Add) -> Option<Self> {
        let text = file.tags.as_ref()?.get(TAG)?.as_deref()?;
        let parts: Vec<&str> = text.split(' ').collect();
        let [table, path, vector, copy] = parts.try_into().ok()?;
        Some(Self {
            file: (table.to_owned(), path.to_owned()),
            vector: vector.to_owned(),
            copy: copy.to_owned(),
        })
    }

    /// Returns whether the deletion vector of `cloned`, a file of the clone, is a copy of the deletion vector of
    /// `file`, the original in the source.
    pub(super) fn has_same_vector(&self, file: &Add, cloned: &Add) -> bool {
        let is_in_file =
            |vector: &DeletionVectorDescriptor| vector.storage_type != DeletionVectorStorage::Inline;
        match (&file.deletion_vector, &cloned.deletion_vector) {
            (None, None) => true,
            (Some(vector), Some(copy)) if is_in_file(vector) => {
                self.vector == vector_id(Some(vector))
                    && self.copy == vector_id(Some(copy))
                    && is_in_file(copy)
            }
            (Some(vector), Some(copy)) => vector == copy,
            _ => false,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file: (table, path), vector, copy } = self;
        write!(f, "{table} {path} {vector} {copy}")
    }
}

fn vector_id(vector: Option<&DeletionVectorDescriptor>) -> String {
    match vector {
        Some(vector) if vector.storage_type != DeletionVectorStorage::Inline => vector.unique_id(),
        _ => "-".to_owned(),
    }
}
