//! The maximum size of a batch of a stream.

/// The maximum number of files in a batch if no limit was set, as in the JVM connector.
const FILES: u64 = 1000;

/// The limits of a batch. Files are added to a batch until a limit is reached. A batch therefore has at least one
/// file, and the last file may exceed the limit in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    files: Option<u64>,
    bytes: Option<u64>,
}

impl Default for StreamLimits {
    /// Admits 1,000 files.
    fn default() -> Self {
        Self { files: Some(FILES), bytes: None }
    }
}

impl StreamLimits {
    /// Creates limits on the number of files and on their size in bytes. If only a size is given, the number of files
    /// is not limited. If neither is given, the limit is 1,000 files.
    pub fn new(files: Option<u64>, bytes: Option<u64>) -> Self {
        match (files, bytes) {
            (None, None) => Self::default(),
            _ => Self { files, bytes },
        }
    }

    /// Creates limits that admit all files.
    pub fn unlimited() -> Self {
        Self { files: None, bytes: None }
    }

    pub(super) fn admission(self) -> Admission {
        Admission {
            files: self.files.unwrap_or(u64::MAX),
            bytes: self.bytes.unwrap_or(u64::MAX),
            has_admitted: false,
        }
    }
}

/// The remaining limits of a batch to which files are being added.
pub(super) struct Admission {
    files: u64,
    bytes: u64,
    /// Whether a file has been considered for the batch.
    has_admitted: bool,
}

impl Admission {
    /// Returns whether no limit has been reached.
    pub(super) fn has_room(&self) -> bool {
        self.files > 0 && self.bytes > 0
    }

    /// Returns whether the batch has room for another file, and subtracts a file of `size` bytes from the limits. The
    /// last file may exceed the limit in bytes.
    pub(super) fn admits(&mut self, size: u64) -> bool {
        let admits = self.has_room();
        self.take(1, size);
        admits
    }

    /// Returns whether files that must be read together belong to the batch: they do if they are the first ones, or if
    /// all of them fit. Subtracts them from the limits.
    pub(super) fn admits_all(&mut self, files: u64, bytes: u64) -> bool {
        let admits = !self.has_admitted || files <= self.files && bytes <= self.bytes;
        self.take(files, bytes);
        admits
    }

    fn take(&mut self, files: u64, bytes: u64) {
        self.has_admitted = true;
        self.files = self.files.saturating_sub(files);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
