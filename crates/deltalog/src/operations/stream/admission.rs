//! The maximum size of a batch.

/// The default number of files of a batch. The JVM connector has the same number.
const FILES: u64 = 1000;

/// The limits of a batch. Another file is admitted as long as no limit is used up, so a batch has at least one file.
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
    /// Creates limits by the number of files and by bytes. If only bytes are given, the number of files is not limited;
    /// if neither is given, the limit is 1,000 files.
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

/// The remaining limits of a batch.
pub(super) struct Admission {
    files: u64,
    bytes: u64,
    /// Whether a file was admitted or refused before.
    has_admitted: bool,
}

impl Admission {
    /// Returns whether something is left of each limit.
    pub(super) fn has_room(&self) -> bool {
        self.files > 0 && self.bytes > 0
    }

    /// Returns whether a file of this size belongs to the batch.
    pub(super) fn admits(&mut self, size: u64) -> bool {
        let admits = self.has_room();
        self.take(1, size);
        admits
    }

    /// Returns whether a group of files that must be read together belongs to the batch: if it is the first, or if all
    /// of its files fit.
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
