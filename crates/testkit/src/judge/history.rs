//! Records the operations of processes, with their times and results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A write that a process wants to make.
///
/// Each row is a unique number. Its class ([`class_of`]) is used in the predicates of replacements.
#[derive(Debug, Clone, Default)]
pub struct Write {
    /// The data files, with their rows in order. No other write uses the same file names.
    pub files: BTreeMap<String, Vec<i64>>,
    /// For an overwrite, the version whose files are all replaced.
    pub replaces: Option<u64>,
    /// For a replacement, the class whose rows are all replaced.
    pub replaces_class: Option<i64>,
    /// The class of rows from which the write's own rows were computed. These rows are from the version on which it
    /// is based.
    pub reads_class: Option<i64>,
    /// The progress of an application.
    pub progress: Option<(String, i64)>,
    /// The data file whose rows are deleted, and their positions. Such a write records progress of an application
    /// that no other write records, so that it can be found in the log.
    pub deletes: Option<(String, BTreeSet<u64>)>,
    /// The version to restore, and a unique text. The version that is replaced is in [`Write::replaces`].
    pub restores: Option<(u64, String)>,
    /// A value for the property [`MINE`] that no other write uses.
    pub property: Option<String>,
    /// The unique name of a new column.
    pub column: Option<String>,
    /// The new clustering columns, and a unique text.
    pub clusters: Option<(Vec<String>, String)>,
    /// Whether the write replaces the table with a new one.
    pub redefines: bool,
    /// Whether the write generates values of the identity column, whose high water mark is part of the metadata.
    pub counts: bool,
}

impl Write {
    /// Returns the rows that the write adds.
    pub fn rows(&self) -> impl Iterator<Item = i64> {
        self.files.values().flatten().copied()
    }

    /// Returns whether the write is a blind append.
    pub fn is_blind(&self) -> bool {
        self.replaces.is_none()
            && self.replaces_class.is_none()
            && self.reads_class.is_none()
            && self.deletes.is_none()
            && self.restores.is_none()
    }

    /// Returns whether the write sets the metadata of the table.
    pub fn sets_metadata(&self) -> bool {
        self.property.is_some() || self.column.is_some() || self.redefines || self.counts
    }
}

/// The table property that processes change.
pub const MINE: &str = "mine";

/// The number of classes of rows.
pub const CLASSES: i64 = 4;

/// Returns the class of a row.
pub fn class_of(row: i64) -> i64 {
    row.rem_euclid(CLASSES)
}

/// The operation that a process intends.
#[derive(Debug, Clone)]
pub enum Intent {
    /// To commit a write.
    Write(Box<Write>),
    /// To read the table at the newest version, or at the given version.
    Read(Option<u64>),
    /// To look for the commit with this id, which is known to have this version.
    Find(String, u64),
    /// To do something that does not commit, such as writing a checkpoint.
    Maintain,
}

impl Intent {
    /// Returns the intent to commit `write`.
    pub fn write(write: Write) -> Self {
        Self::Write(Box::new(write))
    }
}

/// The state of a version as a process has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The version.
    pub version: u64,
    /// The live logical files.
    pub files: BTreeSet<String>,
    /// The newest progress of each application.
    pub progress: BTreeMap<String, i64>,
    /// The version that the same handle had before this read.
    pub before: Option<u64>,
}

/// A batch that a stream has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// The number of the stream among the streams of its process.
    pub stream: u64,
    /// The version of the snapshot with which the stream began.
    pub began_with: u64,
    /// The version that the stream has reached at the end of the batch.
    pub version: u64,
    /// Whether the batch ends within that snapshot.
    pub is_initial: bool,
    /// The logical files in the batch.
    pub files: Vec<String>,
}

/// Where a commit with an unknown outcome was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// At this version.
    At(u64),
    /// It was not found, after all requests had ended.
    Nowhere,
}

/// The result that a process received for an operation.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The write was committed as this version.
    Committed {
        /// The version.
        version: u64,
        /// The id of the transaction.
        txn_id: String,
    },
    /// It is not known whether the write was committed.
    Unknown {
        /// The id of the transaction.
        txn_id: String,
        /// The result of a later search for the id, if there was one.
        found: Option<Found>,
    },
    /// Nothing was committed.
    Failed {
        /// The kind of the error.
        kind: String,
        /// The version that a conflict names.
        version: Option<u64>,
        /// The rule that a conflict names.
        reason: Option<String>,
        /// The whole message.
        message: String,
    },
    /// The process saw this version.
    Saw(View),
    /// The stream returned this batch.
    Streamed(Streamed),
    /// The search found the commit here.
    Found(Found),
    /// The operation was done, or it was not necessary.
    Done,
}

/// An operation that a process requested.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The name of the process.
    pub process: String,
    /// A description of the operation, for messages.
    pub verb: &'static str,
    /// The time at which the operation began.
    pub began: u64,
    /// When the process learned the outcome; `None` if it crashed before that.
    pub ended: Option<u64>,
    /// The operation that was intended.
    pub intent: Intent,
    /// The result; `None` if the process crashed before it received one.
    pub outcome: Option<Outcome>,
    /// The number of requests of this operation that failed.
    pub faults: u64,
}

/// All operations of a run, in the order in which they began.
#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Operation>>);

impl History {
    /// Adds an operation that begins now; returns its number.
    pub fn begin(&self, process: String, verb: &'static str, began: u64, intent: Intent) -> usize {
        let mut operations = self.lock();
        operations.push(Operation { process, verb, began, ended: None, intent, outcome: None, faults: 0 });
        operations.len() - 1
    }

    /// Records the result that the process of operation `number` received.
    pub fn end(&self, number: usize, ended: u64, outcome: Outcome, faults: u64) {
        let operation = &mut self.lock()[number];
        (operation.ended, operation.outcome, operation.faults) = (Some(ended), Some(outcome), faults);
    }

    /// Replaces the intent of operation `number`, once the version on which it is based is known.
    pub fn intend(&self, number: usize, intent: Intent) {
        self.lock()[number].intent = intent;
    }

    /// Records where the commit of operation `number` was found. Until now, its outcome was unknown.
    pub fn found(&self, number: usize, now: u64, place: Found) {
        let operation = &mut self.lock()[number];
        if let Some(Outcome::Unknown { found, .. }) = &mut operation.outcome {
            *found = Some(place);
            operation.ended = Some(now);
        }
    }

    /// Returns the operations.
    pub fn operations(&self) -> Vec<Operation> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Operation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operation {
    /// Returns the write that the operation intends, if it intends one.
    pub fn write(&self) -> Option<&Write> {
        if let Intent::Write(write) = &self.intent { Some(write) } else { None }
    }

    /// Returns the newest version that the process knew to exist when the operation ended.
    pub fn known(&self) -> Option<u64> {
        match &self.outcome {
            Some(Outcome::Saw(view)) => Some(view.version),
            _ => self.committed().map(|(version, _)| version),
        }
    }

    /// If the operation is known to have committed, returns the version and the id of the transaction.
    pub fn committed(&self) -> Option<(u64, &str)> {
        match self.outcome.as_ref()? {
            Outcome::Committed { version, txn_id } => Some((*version, txn_id)),
            Outcome::Unknown { txn_id, found: Some(Found::At(version)) } => Some((*version, txn_id)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({:?}) -> ", self.process, self.verb, self.intent)?;
        match &self.outcome {
            Some(outcome) => write!(f, "{outcome:?}"),
            None => f.write_str("crashed"),
        }
    }
}
