//! The table to which a write goes, and the version of it from which the written data was computed.

use arrow::datatypes::Schema;
use deltalog::engine::protocol::{SetTransaction, StructType};
use deltalog::{
    CreationMode, Environment, Error, ErrorKind, PendingWrite, Result, Snapshot, Storage, TableDefinition,
    WriteRequest,
};

use crate::store_options::{StoreOptions, open_storage};
use crate::write_token::lost_base;

/// The target table of a write, and the snapshot that the writer has read, if there is one.
pub(crate) struct WriteTarget {
    storage: Storage,
    base: Option<Snapshot>,
}

impl WriteTarget {
    /// Returns the table at `uri`. If `base`, a snapshot of that table, is given, the write uses the store with which
    /// the snapshot was opened.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if `base` is a snapshot of another table, and errors of opening the store.
    pub(crate) fn new(
        uri: &str,
        storage_options: Option<StoreOptions>,
        base: Option<Snapshot>,
    ) -> Result<Self> {
        let storage = open_storage(uri, storage_options)?;
        let Some(base) = base else { return Ok(Self { storage, base: None }) };
        if base.storage().url() != storage.url() {
            let message = format!("the base of the write is a snapshot of {}", base.storage().url());
            return Err(Error::invalid_argument(message)
                .in_table(storage.url())
                .with_hint("pass a snapshot of the table that is written to"));
        }
        Ok(Self { storage: base.storage().clone(), base: Some(base) })
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the Delta schema of rows with the Arrow schema `rows`. A decimal type with more than 38 digits is
    /// replaced with the type of the table's column, if the table exists and keeps its columns.
    ///
    /// # Errors
    /// Returns the errors of [`StructType::from_arrow`], and errors of opening the table.
    pub(crate) fn schema_of(&self, rows: &Schema, redefines_columns: bool) -> Result<StructType> {
        let located = |error: Error| error.in_table(self.storage.url());
        let refused = match StructType::from_arrow(rows).map_err(located) {
            Err(refused) if refused.kind() == ErrorKind::Unsupported && !redefines_columns => refused,
            schema => return schema,
        };
        let newest = match &self.base {
            Some(base) => base.clone(),
            None => match Snapshot::open(&self.storage, None) {
                Err(error) if error.kind() == ErrorKind::NotATable => return Err(refused),
                newest => newest?,
            },
        };
        StructType::from_arrow_into(rows, &newest.metadata().schema()?).map_err(located)
    }

    /// Begins a write of data that has the schema `schema_json` or, if that is `None`, the table's schema. `request`
    /// creates the request for a schema.
    ///
    /// # Errors
    /// Returns `NotATable` if there is neither a schema nor a table, and the errors of [`WriteTarget::begin`].
    pub(crate) fn begin_with_schema(
        &self,
        schema_json: Option<&str>,
        request: impl FnOnce(StructType) -> Result<WriteRequest>,
        environment: &Environment,
    ) -> Result<Option<PendingWrite>> {
        if let Some(json) = schema_json {
            return self.begin(request(StructType::from_json(json)?)?, environment);
        }
        if let Some(base) = &self.base {
            return self.begin(request(base.metadata().schema()?)?, environment);
        }
        let newest = Snapshot::open(&self.storage, None).map_err(|error| match error.kind() {
            ErrorKind::NotATable => Error::new(
                ErrorKind::NotATable,
                "there is no Delta table here, and no schema to create one with",
            )
            .in_table(self.storage.url())
            .with_hint("check the path, or pass the schema of the data")
            .with_source(error),
            _ => error,
        })?;
        let schema = newest.metadata().schema()?;
        PendingWrite::on(&self.storage, Some(newest), request(schema)?, environment)
    }

    /// Bases a write on the version `read` of this table, from which the data was computed. If the target already has
    /// an older base, an overwrite keeps it, because that is the version that it replaces.
    ///
    /// The version is opened through the target's store, whose credentials allow writing.
    ///
    /// # Errors
    /// Returns `CommitConflict` if the version no longer exists, and errors from the store.
    pub(crate) fn computed_from(self, read: &Snapshot, is_overwrite: bool) -> Result<Self> {
        let version = read.version();
        let is_base =
            |base: &Snapshot| base.version() == version || (is_overwrite && base.version() < version);
        if self.base.as_ref().is_some_and(is_base) {
            return Ok(self);
        }
        let builder = Snapshot::builder(&self.storage).table_id(&read.metadata().id).version(version);
        let builder =
            read.resolver().allowed_roots().try_fold(builder, |builder, root| builder.allow_root(&root))?;
        let base = builder.open().map_err(|error| lost_base(&self.storage, version, error))?;
        Ok(Self { base: Some(base), ..self })
    }

    /// Returns the snapshot that the writer has read.
    pub(crate) fn base(&self) -> Option<&Snapshot> {
        self.base.as_ref()
    }

    /// Begins a write; see [`PendingWrite::begin`] and [`PendingWrite::begin_on`].
    pub(crate) fn begin(
        &self,
        request: WriteRequest,
        environment: &Environment,
    ) -> Result<Option<PendingWrite>> {
        match &self.base {
            None => PendingWrite::begin(&self.storage, request, environment),
            Some(base) => PendingWrite::begin_on(base, request, environment),
        }
    }

    /// Begins to create or replace the table; see [`PendingWrite::define`] and [`PendingWrite::define_on`].
    pub(crate) fn define(
        &self,
        definition: &TableDefinition,
        mode: CreationMode,
        progress: Vec<SetTransaction>,
        environment: &Environment,
    ) -> Result<Option<PendingWrite>> {
        match &self.base {
            None => PendingWrite::define(&self.storage, definition, mode, progress, environment),
            Some(base) => PendingWrite::define_on(base, definition, mode, progress, environment),
        }
    }
}
