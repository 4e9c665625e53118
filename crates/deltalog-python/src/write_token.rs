//! `Token`: a write, serialized for other processes.

use deltalog::engine::commit::{Conflict, ConflictReason, PartitionOverwrite, SaveMode, changed_for_writers};
use deltalog::engine::protocol::TableHeader;
use deltalog::engine::protocol::{Metadata, Protocol, StructType};
use deltalog::engine::write::TableWriteSpec;
use deltalog::{
    Environment, Error, ErrorKind, IdentityValues, ParseMode, PendingWrite, ReplaceWhere, Result, RowsRead,
    SchemaMode, Snapshot, SnapshotBuilder, Storage, WriteRequest, parse_predicate,
};
use serde::{Deserialize, Serialize};

use crate::commit_arguments::progress_of;
use crate::table_options::TableOptions;
use crate::upkeep;

/// Returns the rows that scans with these filters read. A part of a filter that cannot be parsed may be true for any
/// row.
pub(crate) fn rows_read(filters: &[String], time_zone: &str) -> Result<RowsRead> {
    if filters.iter().any(|filter| filter.trim().is_empty()) {
        return Ok(RowsRead::All);
    }
    let parsed = filters.iter().map(|filter| parse_predicate(filter, time_zone, ParseMode::Pruning));
    Ok(RowsRead::Matching(parsed.collect::<Result<_>>()?))
}

fn conflict(storage: &Storage, version: u64, reason: ConflictReason) -> Error {
    Conflict::new(version, reason).into_error(ErrorKind::CommitConflict, storage.url())
}

/// Returns the error for a write whose base, `version`, can no longer be opened.
pub(crate) fn lost_base(storage: &Storage, version: u64, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotATable | ErrorKind::TableReplaced => {
            conflict(storage, version, ConflictReason::TableReplaced)
        }
        ErrorKind::VersionNotFound => conflict(storage, version, ConflictReason::LogCleanedUp),
        _ => error,
    }
}

/// A write, serialized for other processes. It contains no credentials.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) uri: String,
    /// The version on which the write is based; `None` if it creates the table.
    pub(crate) base: Option<u64>,
    /// The table that the write creates, if it creates one. All processes use the same physical names in its files.
    pub(crate) new_table: Option<TableHeader>,
    /// The protocol and the metadata of the base version.
    pub(crate) base_table: Option<(Protocol, Metadata)>,
    /// The allowed roots with which the base was opened, as URLs.
    pub(crate) allowed_roots: Vec<String>,
    pub(crate) schema: String,
    pub(crate) mode: String,
    pub(crate) partition_overwrite: String,
    pub(crate) options: TableOptions,
    /// The application that records its progress with this write, and the version of that progress.
    pub(crate) app_transaction: Option<(String, i64)>,
    /// The predicate for the rows that an overwrite replaces, the time zone for its times, and whether new rows must
    /// meet it.
    pub(crate) replace_where: Option<(String, String, bool)>,
    /// The rows of the table from which the data is computed, if any: the filters of the scans (an empty filter selects
    /// all rows), and the time zone for their times.
    pub(crate) reads: Option<(Vec<String>, String)>,
    /// `merge` or `overwrite`, if the write may change the schema.
    pub(crate) schema_mode: Option<String>,
    /// The table with its new schema. All processes use the same physical names in files.
    pub(crate) evolved: Option<TableHeader>,
    /// The directory of the write's files, relative to the table's root.
    pub(crate) directory: String,
}

impl Token {
    /// Creates the token of a new write of data with this schema. [`Token::record`] later adds the base version.
    pub(crate) fn new(storage: &Storage, schema: &str, mode: SaveMode, environment: &Environment) -> Self {
        Self {
            uri: storage.url(),
            base: None,
            new_table: None,
            base_table: None,
            allowed_roots: Vec::new(),
            schema: schema.to_owned(),
            mode: mode.name().to_ascii_lowercase(),
            partition_overwrite: "static".to_owned(),
            options: TableOptions::default(),
            app_transaction: None,
            replace_where: None,
            reads: None,
            schema_mode: None,
            evolved: None,
            directory: environment.uuid().to_string(),
        }
    }

    pub(crate) fn request(&self) -> Result<WriteRequest> {
        let mut request =
            self.options.clone().request(StructType::from_json(&self.schema)?, SaveMode::parse(&self.mode)?);
        request.partition_overwrite = PartitionOverwrite::parse(&self.partition_overwrite)?;
        request.app_transactions = progress_of(self.app_transaction.clone());
        request.replace_where = self.replace_where.as_ref().map(|(predicate, time_zone, checks_rows)| {
            let mut replaced = ReplaceWhere::new(predicate);
            (replaced.time_zone, replaced.checks_rows) = (time_zone.clone(), *checks_rows);
            replaced
        });
        if let Some((filters, time_zone)) = &self.reads {
            request.reads = rows_read(filters, time_zone)?;
        }
        if let Some(mode) = &self.schema_mode {
            request.schema_mode = SchemaMode::parse(mode)?;
        }
        request.evolved = self.evolved.clone();
        Ok(request)
    }

    /// Records the version on which the checked write is based, or the table that it creates.
    pub(crate) fn record(&mut self, pending: &PendingWrite) {
        self.new_table = pending.new_table().cloned();
        self.evolved = pending.evolved().cloned();
        if let Some(base) = pending.base() {
            self.base = Some(base.version());
            self.base_table = Some((base.protocol().clone(), base.metadata().clone()));
            self.allowed_roots = base.resolver().allowed_roots().collect();
        }
    }

    /// Opens the snapshot on which the write is based.
    ///
    /// An append that has read no rows of the table does not depend on the files of its base. If a cleanup has
    /// deleted that version, the append is based on the newest version instead, unless the protocol or metadata have
    /// changed in a way that affects writers, or other writers have used the values that it generated for identity
    /// columns.
    fn open_base(&self, storage: &Storage) -> Result<Option<Snapshot>> {
        let Some(version) = self.base else { return Ok(None) };
        let open = |version: Option<u64>| {
            let builder = Snapshot::builder(storage);
            let ids = self.base_table.iter().map(|(_, metadata)| &metadata.id);
            let builder = ids.fold(builder, |builder, id| builder.table_id(id));
            let builder =
                self.allowed_roots.iter().try_fold(builder, |builder, root| builder.allow_root(root))?;
            version.into_iter().fold(builder, SnapshotBuilder::version).open()
        };
        let conflict = |reason| conflict(storage, version, reason);
        let is_blind = self.mode == "append" && self.reads.is_none();
        let base = match open(Some(version)) {
            Err(error) if error.kind() == ErrorKind::VersionNotFound && is_blind => open(None),
            opened => opened,
        };
        let base = base.map_err(|error| lost_base(storage, version, error))?;
        if base.version() != version
            && let Some((protocol, metadata)) = &self.base_table
        {
            // The write would undo any later change of the metadata, even a harmless one.
            if self.evolved.is_some() && base.metadata() != metadata {
                return Err(conflict(ConflictReason::MetadataChanged));
            }
            if let Some(reason) = changed_for_writers(protocol, metadata, &base)? {
                return Err(conflict(reason));
            }
            if self.counted_from(protocol, metadata)?
                != self.counted_from(base.protocol(), base.metadata())?
            {
                return Err(conflict(ConflictReason::MetadataChanged));
            }
        }
        Ok(Some(base))
    }

    /// Returns the first values that the write generates for identity columns which its rows lack. (Protocol:
    /// "Identity Columns".)
    fn counted_from(&self, protocol: &Protocol, metadata: &Metadata) -> Result<Vec<IdentityValues>> {
        let schema = StructType::from_json(&self.schema)?;
        let given: Vec<String> = schema.fields().iter().map(|field| field.name.clone()).collect();
        TableWriteSpec::new(protocol, metadata)?.rules().identity_values(&given)
    }

    /// Opens the write that this token describes.
    pub(crate) fn open(&self, storage: &Storage) -> Result<PendingWrite> {
        let environment = upkeep::environment();
        if let Some(table) = &self.new_table {
            return PendingWrite::creating(storage, table.clone(), self.request()?, &environment);
        }
        let base = self.open_base(storage)?;
        PendingWrite::on(storage, base, self.request()?, &environment)?.ok_or_else(|| {
            Error::invalid_argument("the write has no effect, so it cannot be resumed")
                .in_table(storage.url())
        })
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| {
            Error::invalid_argument("the bytes are not a token of a write").with_source(error)
        })
    }
}
