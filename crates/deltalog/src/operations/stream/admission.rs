//! How much a batch may have.

/// The default number of files of a batch. The JVM connector has the same number.
const FILES: u64 = 1000;

/// The limits of a batch. A file is admitted while something is left of each, so that a batch has at least one.
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
    /// Creates limits by the number of files and their bytes: with bytes alone, any number of files; with neither,
    /// 1,000 files.
    pub fn new(files: Option<u64>, bytes: Option<u64>) -> Self {
        match (files, bytes) {
            (None, None) => Self::default(),
            _ => Self { files, bytes },
        }
    }

    /// Admits all that there is.
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
    /// Whether a file was asked for.
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

    /// Returns whether so many files that must be read together belong to the batch: if they are the first, or if all
    /// of them fit.
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
