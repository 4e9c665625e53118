//! One commit: its bytes become the few actions that are structs and the file actions that are batches.

use arrow::array::RecordBatch;

use super::builder::{AddRows, RemoveRows, nothing};
use super::line::{Line, Text};
use super::quick;
use crate::error::{Error, Result};
use crate::log::CommitFile;
use crate::protocol::{AddCdcFile, CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction};
use crate::storage::Storage;

/// A parsed commit. Within it, as everywhere in the replay, the newest action comes first: the last line.
#[derive(Debug)]
pub struct Commit {
    /// Its version.
    pub version: u64,
    /// File time, milliseconds since the epoch.
    pub modified_ms: i64,
    /// The protocol, if the commit sets it.
    pub protocol: Option<Protocol>,
    /// The metadata, if the commit sets it.
    pub metadata: Option<Metadata>,
    /// The provenance, if the writer gave it.
    pub commit_info: Option<CommitInfo>,
    /// Progress of applications, newest first.
    pub transactions: Vec<SetTransaction>,
    /// Domains, newest first.
    pub domains: Vec<DomainMetadata>,
    /// Change data files.
    pub cdc: Vec<AddCdcFile>,
    /// Rows of `add` actions, newest first, in the form of the log; columns that no row has are left out.
    pub adds: RecordBatch,
    /// Rows of `remove` actions, newest first, in the form of the log; columns that no row has are left out.
    pub removes: RecordBatch,
    /// Where the statistics are, if `adds` is without them; see [`Commit::read_without_stats`].
    pub(super) statistics_in: Option<CommitFile>,
    /// For each file action, newest first, whether it is an `add`: rows of `adds` and `removes` are to be
    /// taken in this order.
    pub(super) order: Vec<bool>,
}

impl Commit {
    /// Reads and parses a commit.
    ///
    /// # Errors
    /// `CorruptLog` with file and line, `FileNotFound`, and the store's own.
    pub fn read(storage: &Storage, file: CommitFile) -> Result<Self> {
        Self::read_with(storage, file, KeptStatistics::OfAdds)
    }

    /// As [`Commit::read`], but also with the column `stats` of the `remove` actions, which are no tombstones
    /// but the end of files that had rows.
    ///
    /// # Errors
    /// As [`Commit::read`].
    pub(crate) fn read_with_all_stats(storage: &Storage, file: CommitFile) -> Result<Self> {
        Self::read_with(storage, file, KeptStatistics::OfAll)
    }

    /// As [`Commit::read`], but leaves the statistics of the files where they are: they are most of what a
    /// commit holds. Who needs them reads the commit once more.
    ///
    /// # Errors
    /// As [`Commit::read`].
    pub fn read_without_stats(storage: &Storage, file: CommitFile) -> Result<Self> {
        Ok(Self { statistics_in: Some(file), ..Self::read_with(storage, file, KeptStatistics::None)? })
    }

    fn read_with(storage: &Storage, file: CommitFile, kept: KeptStatistics) -> Result<Self> {
        let located =
            |error: Error| error.at_path(file.path()).at_version(file.version).in_table(storage.url());
        let bytes = storage.read(&file.path()).map_err(located)?;
        Self::parse_with(&bytes, file.version, file.modified_ms, kept).map_err(located)
    }

    /// Parses the bytes of a commit.
    ///
    /// # Errors
    /// `CorruptLog` with the line.
    pub fn parse(bytes: &[u8], version: u64, modified_ms: i64) -> Result<Self> {
        Self::parse_with(bytes, version, modified_ms, KeptStatistics::OfAdds)
    }

    fn parse_with(bytes: &[u8], version: u64, modified_ms: i64, kept: KeptStatistics) -> Result<Self> {
        let lines = lines(bytes);
        if lines.is_empty() {
            return Err(Error::corrupt_log("the commit is empty")
                .with_hint("its writer died while writing; restore the file, or read a version before it"));
        }
        let count = |prefix: &[u8]| lines.iter().filter(|(_, line)| line.starts_with(prefix)).count();
        let (adds, removes) = (count(b"{\"add\""), count(b"{\"remove\""));
        let mut commit = CommitParts { kept, expected: (adds, removes), ..CommitParts::default() };
        for (number, line) in lines.into_iter().rev() {
            commit.add_line(line).map_err(|error| error.at_line(number))?;
        }
        Ok(Self {
            version,
            modified_ms,
            protocol: commit.protocol,
            metadata: commit.metadata,
            commit_info: commit.commit_info,
            transactions: commit.transactions,
            domains: commit.domains,
            cdc: commit.cdc,
            adds: commit.adds.map_or_else(|| Ok(nothing()), AddRows::finish)?,
            removes: commit.removes.map_or_else(|| Ok(nothing()), RemoveRows::finish)?,
            statistics_in: None,
            order: commit.order,
        })
    }

    /// When the version was made, by the writer's in-commit clock if it kept one, else by the file's time;
    /// milliseconds since the epoch.
    pub fn timestamp_ms(&self) -> i64 {
        self.commit_info.as_ref().and_then(|info| info.in_commit_timestamp).unwrap_or(self.modified_ms)
    }
}

/// The lines that hold something, and their numbers.
fn lines(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (number, end) in memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]).enumerate() {
        let line = bytes.get(start..end).unwrap_or_default().trim_ascii();
        if !line.is_empty() {
            lines.push((number + 1, line));
        }
        start = end + 1;
    }
    lines
}

/// Which statistics of files to keep of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum KeptStatistics {
    #[default]
    None,
    OfAdds,
    OfAll,
}

#[derive(Default)]
struct CommitParts {
    kept: KeptStatistics,
    /// How many files there are to add and to remove, about.
    expected: (usize, usize),
    adds: Option<AddRows>,
    removes: Option<RemoveRows>,
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
    commit_info: Option<CommitInfo>,
    transactions: Vec<SetTransaction>,
    domains: Vec<DomainMetadata>,
    cdc: Vec<AddCdcFile>,
    order: Vec<bool>,
}

impl CommitParts {
    fn adds(&mut self) -> &mut AddRows {
        self.adds.get_or_insert_with(|| AddRows::with_capacity(self.expected.0))
    }

    fn removes(&mut self) -> &mut RemoveRows {
        self.removes.get_or_insert_with(|| RemoveRows::with_capacity(self.expected.1))
    }

    fn add_line(&mut self, line: &[u8]) -> Result<()> {
        let with_stats = self.kept != KeptStatistics::None;
        if let Some(add) = quick::add_line(line, with_stats) {
            self.adds().append(&add)?;
            self.order.push(true);
            return Ok(());
        }
        let mut line: Line<'_> = serde_json::from_slice(line).map_err(|error| {
            let (message, hint) = match error.is_eof() {
                true => (
                    "the line is torn",
                    "its writer died while writing; restore the file, or read a version before it",
                ),
                false => (
                    "the line is not an action",
                    "the file was damaged; restore it, or read a version before it",
                ),
            };
            Error::corrupt_log(message).with_hint(hint).with_source(error)
        })?;
        if let Some(add) = &mut line.add {
            add.stats = add.stats.take().filter(|_| with_stats);
            self.adds().append(add)?;
            self.order.push(true);
        }
        if let Some(remove) = &line.remove {
            let stats = remove.stats.filter(|_| self.kept == KeptStatistics::OfAll);
            // What is no text says nothing.
            let stats =
                stats.and_then(|stats| serde_json::from_str::<Option<Text<'_>>>(stats.get()).ok().flatten());
            self.removes().append(remove, stats.as_ref().map(|stats| stats.0.as_ref()))?;
            self.order.push(false);
        }
        self.cdc.extend(line.cdc);
        self.transactions.extend(line.txn);
        self.domains.extend(line.domain_metadata);
        // The newest is seen first.
        self.metadata = self.metadata.take().or(line.meta_data);
        self.protocol = self.protocol.take().or(line.protocol);
        self.commit_info = self.commit_info.take().or(line.commit_info);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_named() {
        let error = Commit::parse(b"{\"commitInfo\":{}}\n{\"add\":{\"path\":\"a", 3, 0).unwrap_err();
        assert_eq!(error.line(), Some(2));
        assert!(error.to_string().contains("torn"), "{error}");
    }

    #[test]
    fn an_empty_commit_is_an_error() {
        assert!(Commit::parse(b"", 3, 0).is_err());
        assert!(Commit::parse(b"\n \r\n", 3, 0).is_err());
    }

    /// Protocol: "Protocol Evolution".
    #[test]
    fn unknown_actions_and_fields_are_passed_over() {
        let commit = Commit::parse(b"{\"new\":{}}\r\n{\"add\":{\"path\":\"a\",\"partitionValues\":null,\"size\":1,\"modificationTime\":2,\"dataChange\":true,\"x\":[{}]}}\n", 3, 0).unwrap();
        assert_eq!(commit.adds.num_rows(), 1);
    }

    /// Protocol: "Action Reconciliation", "The latest `metaData` action seen wins".
    #[test]
    fn the_last_line_wins() {
        let text = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"protocol":{"minReaderVersion":1,"minWriterVersion":3}}"#;
        assert_eq!(Commit::parse(text.as_bytes(), 0, 0).unwrap().protocol.unwrap().min_writer_version, 3);
    }
}
