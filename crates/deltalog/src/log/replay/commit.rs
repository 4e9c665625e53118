//! A parsed commit: file actions as record batches, other actions as structs.

use arrow::array::{AsArray, RecordBatch};

use super::builder::{AddRows, RemoveRows, nothing};
use super::columns::FileColumn;
use super::quick;
use crate::error::{Error, Result};
use crate::log::CommitFile;
use crate::protocol::{
    Action, ActionLine, AddCdcFile, CommitInfo, DomainMetadata, EscapedText, Metadata, Protocol,
    SetTransaction,
};
use crate::storage::Storage;

/// A parsed commit. Its actions are ordered newest first, as everywhere in the replay: the newest action is in the last
/// line of the file.
#[derive(Debug)]
pub struct Commit {
    /// The version.
    pub version: u64,
    /// The file's modification time in milliseconds since the epoch.
    pub modified_ms: i64,
    /// The protocol, if the commit sets it.
    pub protocol: Option<Protocol>,
    /// The metadata, if the commit sets it.
    pub metadata: Option<Metadata>,
    /// The content of `commitInfo`, if the writer has recorded one.
    pub commit_info: Option<CommitInfo>,
    /// The progress of applications, newest first.
    pub transactions: Vec<SetTransaction>,
    /// The metadata domains, newest first.
    pub domains: Vec<DomainMetadata>,
    /// The change data files.
    pub cdc: Vec<AddCdcFile>,
    /// The `add` actions, newest first, with the log's columns. Columns that are null in every row are left out.
    pub adds: RecordBatch,
    /// The `remove` actions, ordered and represented like `adds`.
    pub removes: RecordBatch,
    /// If `adds` lacks the statistics, the file from which to read them; see [`Commit::read_without_stats`].
    pub(super) statistics_in: Option<CommitFile>,
    /// Whether `adds` has the statistics of the files.
    keeps_statistics: bool,
    /// Whether each file action is an `add`, newest first. This shows how the rows of `adds` and `removes` alternate in
    /// the commit.
    pub(super) order: Vec<bool>,
}

impl Commit {
    /// Reads and parses a commit.
    ///
    /// # Errors
    /// `CorruptLog` with file and line, `FileNotFound`, and errors from the store.
    pub fn read(storage: &Storage, file: CommitFile) -> Result<Self> {
        Self::read_with(storage, file, KeptStatistics::OfAdds)
    }

    /// Reads a commit with the statistics of its `remove` actions, which show how many rows were removed.
    ///
    /// # Errors
    /// Returns the same errors as [`Commit::read`].
    pub(crate) fn read_with_all_stats(storage: &Storage, file: CommitFile) -> Result<Self> {
        Self::read_with(storage, file, KeptStatistics::OfAll)
    }

    /// Reads a commit without the statistics of its files, which take up most of its bytes. If they are needed later,
    /// they are read from the file again.
    ///
    /// # Errors
    /// Returns the same errors as [`Commit::read`].
    pub fn read_without_stats(storage: &Storage, file: CommitFile) -> Result<Self> {
        Ok(Self { statistics_in: Some(file), ..Self::read_with(storage, file, KeptStatistics::None)? })
    }

    fn read_with(storage: &Storage, file: CommitFile, kept: KeptStatistics) -> Result<Self> {
        let located =
            |error: Error| error.at_path(file.path()).at_version(file.version).in_table(storage.url());
        let bytes = storage.read_listed(&file.path(), file.listed).map_err(located)?;
        Self::parse_with(&bytes, file.version, file.modified_ms, kept).map_err(located)
    }

    /// Parses the bytes of a commit.
    ///
    /// # Errors
    /// `CorruptLog` with the line.
    pub fn parse(bytes: &[u8], version: u64, modified_ms: i64) -> Result<Self> {
        Self::parse_with(bytes, version, modified_ms, KeptStatistics::OfAdds)
    }

    /// Parses the bytes of a commit without the statistics of its files.
    ///
    /// # Errors
    /// Returns the same errors as [`Commit::parse`].
    pub(crate) fn parse_without_stats(bytes: &[u8], version: u64) -> Result<Self> {
        Self::parse_with(bytes, version, 0, KeptStatistics::None)
    }

    /// Returns whether the commit sets the protocol or the metadata, or adds or removes rows. Moving rows to other
    /// files does not count as a change.
    pub(crate) fn changes_table(&self) -> bool {
        let moves_rows = |batch: &RecordBatch| {
            let changes = batch.column_by_name(FileColumn::DataChange.name());
            batch.num_rows() == 0
                || changes
                    .and_then(|column| column.as_boolean_opt())
                    .is_some_and(|changes| changes.true_count() == 0)
        };
        self.protocol.is_some()
            || self.metadata.is_some()
            || !moves_rows(&self.adds)
            || !moves_rows(&self.removes)
    }

    /// Returns a commit of `version` without any actions. The caller can then set all actions except file actions.
    pub(crate) fn without_files(version: u64) -> Self {
        Self {
            version,
            modified_ms: 0,
            protocol: None,
            metadata: None,
            commit_info: None,
            transactions: Vec::new(),
            domains: Vec::new(),
            cdc: Vec::new(),
            adds: nothing(),
            removes: nothing(),
            statistics_in: None,
            keeps_statistics: true,
            order: Vec::new(),
        }
    }

    /// Returns a commit of `version` that only adds files. `adds` has the log's columns.
    pub(crate) fn of_adds(version: u64, adds: RecordBatch) -> Self {
        Self { order: vec![true; adds.num_rows()], adds, ..Self::without_files(version) }
    }

    /// Returns a commit of `version` that only removes files. `removes` has the log's columns.
    pub(crate) fn of_removes(version: u64, removes: RecordBatch) -> Self {
        Self { order: vec![false; removes.num_rows()], removes, ..Self::without_files(version) }
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
            keeps_statistics: kept != KeptStatistics::None,
            order: commit.order,
        })
    }

    /// Returns one pair for each file action, in the order of the commit's lines: whether it is an `add`, and its row
    /// in `adds` or `removes`.
    pub(crate) fn file_actions(&self) -> impl Iterator<Item = (bool, usize)> {
        let (mut adds, mut removes) = (self.adds.num_rows(), self.removes.num_rows());
        // The rows of both batches are ordered newest first, too.
        self.order.iter().rev().map(move |is_add| {
            let row = if *is_add { &mut adds } else { &mut removes };
            *row = row.saturating_sub(1);
            (*is_add, *row)
        })
    }

    /// Returns whether `adds` has the statistics of the files.
    pub(crate) fn has_statistics(&self) -> bool {
        self.keeps_statistics
    }

    /// Returns the time at which the version was committed, in milliseconds since the epoch: the in-commit timestamp if
    /// there is one, otherwise the file's modification time.
    pub fn timestamp_ms(&self) -> i64 {
        self.commit_info.as_ref().and_then(|info| info.in_commit_timestamp).unwrap_or(self.modified_ms)
    }
}

/// Returns the lines that are not blank, with their line numbers.
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

/// The kinds of file actions for which statistics are kept.
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
    /// The estimated number of `add` and of `remove` actions.
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
        match ActionLine::parse(line)? {
            Some(ActionLine::Add(mut add)) => {
                add.stats = add.stats.take().filter(|_| with_stats);
                self.adds().append(&add)?;
                self.order.push(true);
            }
            Some(ActionLine::Remove(mut remove)) => {
                let stats = remove.stats.take().filter(|_| self.kept == KeptStatistics::OfAll);
                let tags = remove.tags.take().filter(|_| with_stats);
                let stats = stats.map(EscapedText::unescaped);
                self.removes().append(&remove, stats.as_deref(), tags.as_ref())?;
                self.order.push(false);
            }
            Some(ActionLine::Other(action)) => self.add_other(action),
            None => {}
        }
        Ok(())
    }

    fn add_other(&mut self, action: Action) {
        match action {
            Action::Cdc(cdc) => self.cdc.push(cdc),
            Action::Txn(transaction) => self.transactions.push(transaction),
            Action::DomainMetadata(domain) => self.domains.push(domain),
            // Lines are parsed from the last to the first, so the action that is seen first is the one that counts.
            Action::Metadata(metadata) => self.metadata = self.metadata.take().or(Some(metadata)),
            Action::Protocol(protocol) => self.protocol = self.protocol.take().or(Some(protocol)),
            // Unlike for other actions, the first `commitInfo` of the commit counts. It is parsed last. (PROTOCOL,
            // "In-Commit Timestamps".)
            Action::CommitInfo(info) => self.commit_info = Some(info),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn a_truncated_last_line_is_reported_with_its_number() {
        let error = Commit::parse(b"{\"commitInfo\":{}}\n{\"add\":{\"path\":\"a", 3, 0).unwrap_err();
        assert_eq!(error.line(), Some(2));
        assert!(error.to_string().contains("cut off"), "{error}");
    }

    #[test]
    fn an_empty_commit_is_an_error() {
        assert!(Commit::parse(b"", 3, 0).is_err());
        assert!(Commit::parse(b"\n \r\n", 3, 0).is_err());
    }

    /// Protocol: "Protocol Evolution".
    #[test]
    fn unknown_actions_and_fields_are_ignored() {
        let add = r#"{"add":{"path":"a","partitionValues":null,"size":1,"modificationTime":2,"x":[{}]}}"#;
        let commit = Commit::parse(format!("{{\"new\":{{}}}}\r\n{add}\n").as_bytes(), 3, 0).unwrap();
        assert_eq!(commit.adds.num_rows(), 1);
    }

    /// Protocol: "Action Reconciliation", "The latest `metaData` action seen wins".
    #[test]
    fn the_last_line_wins() {
        let text = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"protocol":{"minReaderVersion":1,"minWriterVersion":3}}"#;
        assert_eq!(Commit::parse(text.as_bytes(), 0, 0).unwrap().protocol.unwrap().min_writer_version, 3);
    }

    /// Protocol: "In-Commit Timestamps", "The `commitInfo` action must be the first action in the commit".
    #[test]
    fn the_first_commit_info_counts() {
        let text = "{\"commitInfo\":{\"inCommitTimestamp\":5}}\n{\"commitInfo\":{\"inCommitTimestamp\":6}}";
        assert_eq!(Commit::parse(text.as_bytes(), 0, 0).unwrap().timestamp_ms(), 5);
    }

    /// A line that two readers could understand differently is refused, whichever function parses it.
    #[test]
    fn ambiguous_lines_are_refused() {
        for line in [
            r#"{"add":{"path":"a","size":1},"remove":{"path":"b"}}"#,
            r#"{"add":{"path":"a","size":1},"add":{"path":"b","size":1}}"#,
            r#"{"add":{"path":"a","size":1,"partitionValues":{"p":"1","p":"2"}}}"#,
            r#"{"remove":{"path":"a","partitionValues":{"p":"1","p":"2"}}}"#,
            r#"{"add":{"path":"a","size":1,"stats":{"numRecords":1}}}"#,
            r#"{"remove":{"path":"a","stats":{"numRecords":1}}}"#,
            r#"{"remove":{"path":"a","stats":"\ud800"}}"#,
        ] {
            assert!(Commit::parse(line.as_bytes(), 0, 0).is_err(), "{line}");
            assert!(Action::parse_line(line).is_err(), "{line}");
        }
    }

    #[test]
    fn fields_with_a_default_may_be_missing() {
        let line = r#"{"add":{"path":"a","size":1}}"#;
        let commit = Commit::parse(line.as_bytes(), 0, 0).unwrap();
        let Some(Action::Add(add)) = Action::parse_line(line).unwrap() else { panic!("no add") };
        assert_eq!((add.modification_time, add.data_change), (0, true));
        let column = |name: &str| commit.adds.column_by_name(name).unwrap().clone();
        assert_eq!(column("modificationTime").as_primitive::<Int64Type>().value(0), 0);
        assert!(column("dataChange").as_boolean().value(0));
    }
}
