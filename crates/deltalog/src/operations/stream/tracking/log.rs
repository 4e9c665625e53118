//! A schema log. Each entry is a file `_schema_log_<table id>[_<id>]/<number>` below the location of the log.

use super::entry::Entry;
use crate::error::{Error, Result};
use crate::storage::{PutOutcome, Storage};

/// The schema log of one stream, as far as the stream has read and written it.
pub(super) struct SchemaLog {
    storage: Storage,
    directory: String,
    /// The last entry, and its number.
    current: Option<(i64, Entry)>,
}

impl SchemaLog {
    /// Reads the last entry.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(super) fn open(storage: &Storage, table_id: &str, id: Option<&str>) -> Result<Self> {
        let id = id.map(|id| format!("_{id}")).unwrap_or_default();
        let directory = format!("_schema_log_{table_id}{id}");
        let mut log = Self { storage: storage.clone(), directory, current: None };
        let files = log.storage.list_directory_after(&log.directory, "")?;
        // Other writers may have left temporary files and checksum files, whose names are not numbers. These are
        // ignored.
        let number = |name: &str| name.rsplit('/').next().and_then(|name| name.parse::<i64>().ok());
        if let Some(last) = files.iter().filter_map(|file| number(&file.name)).max() {
            log.current = log.entry(last)?.map(|entry| (last, entry));
        }
        Ok(log)
    }

    fn path(&self, number: i64) -> String {
        format!("{}/{number}", self.directory)
    }

    fn entry(&self, number: i64) -> Result<Option<Entry>> {
        let path = self.path(number);
        let bytes = if number < 0 { None } else { self.storage.get(&path)? };
        bytes.map(|bytes| Entry::parse(&bytes).map_err(|error| error.at_path(path))).transpose()
    }

    /// Returns the last entry.
    pub(super) fn current(&self) -> Option<&Entry> {
        self.current.as_ref().map(|(_, entry)| entry)
    }

    /// Returns the entry before the last.
    ///
    /// # Errors
    /// Returns the same errors as [`SchemaLog::open`].
    pub(super) fn previous(&self) -> Result<Option<Entry>> {
        self.previous_number().map_or(Ok(None), |number| self.entry(number))
    }

    fn previous_number(&self) -> Option<i64> {
        let (number, current) = self.current.as_ref()?;
        Some(current.previous_metadata_seq_num.unwrap_or(number - 1))
    }

    /// Adds an entry. If `replaces` is true, it replaces the last entry: its predecessor is then the entry before the
    /// last one.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if another stream has added an entry, and errors from the store.
    pub(super) fn append(&mut self, mut entry: Entry, replaces: bool) -> Result<()> {
        if replaces {
            entry.previous_metadata_seq_num = self.previous_number();
        }
        if self.current() == Some(&entry) {
            return Ok(());
        }
        let number = self.current.as_ref().map_or(0, |(number, _)| number + 1);
        let path = self.path(number);
        match self.storage.put_if_absent(&path, entry.to_text()?)? {
            PutOutcome::Created => {}
            // This call may have written the entry itself, if the store's answer was lost.
            PutOutcome::AlreadyExists | PutOutcome::Unknown(_)
                if self.entry(number)?.as_ref() == Some(&entry) => {}
            PutOutcome::Unknown(error) => return Err(error),
            PutOutcome::AlreadyExists => {
                return Err(Error::invalid_argument(
                    "another stream has recorded a schema at the same location at the same time",
                )
                .at_path(path)
                .with_hint(
                    "give each stream a schemaTrackingLocation of its own, or tell sources of one stream apart by \
                     streamingSourceTrackingId",
                ));
            }
        }
        self.current = Some((number, entry));
        Ok(())
    }
}
