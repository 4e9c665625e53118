//! Writes that create or replace a table by its definition, with or without rows.

use super::{PendingWrite, Target, base, spec_of};
use crate::commit::{AlreadyApplied, Operation, PartitionOverwrite, RowsRead, SaveMode, check_distinct};
use crate::error::{Error, ErrorKind, Result};
use crate::operations::define::{CreationMode, TableDefinition, operation};
use crate::protocol::SetTransaction;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::write::TableWriteSpec;

impl PendingWrite {
    /// Begins to create or replace a table, in a single commit that also contains the written rows. Returns `None` if
    /// the mode is `Ignore` and the table exists.
    ///
    /// A replacement removes all files of the newest version and is serializable: it conflicts with every commit
    /// since that version, except for commits that only record the progress of other applications or change metadata
    /// domains of users. Every writer that has read the old table conflicts with the replacement. If the new rows
    /// were computed from an older version, use [`PendingWrite::define_on`]; otherwise commits after that version are
    /// lost without a conflict.
    ///
    /// # Errors
    /// Returns `TableAlreadyExists`, `SchemaMismatch` or `InvalidArgument` for a table that cannot exist or must not
    /// be replaced, `Unsupported` if the table could not be written, and errors from the store.
    pub fn define(
        storage: &Storage,
        definition: &TableDefinition,
        mode: CreationMode,
        app_transactions: Vec<SetTransaction>,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        Self::define_at(storage, base::newest(storage)?, definition, mode, app_transactions, environment)
    }

    /// Begins to replace a table from which the writer has read the version `read`. Returns `None` if the mode is
    /// `Ignore`.
    ///
    /// A replacement removes the files of exactly that version. It fails with `CommitConflict` if another commit has
    /// added or removed files since, or has changed the protocol or the metadata.
    ///
    /// # Errors
    /// Returns the same errors as [`PendingWrite::define`], and `CommitConflict`.
    pub fn define_on(
        read: &Snapshot,
        definition: &TableDefinition,
        mode: CreationMode,
        app_transactions: Vec<SetTransaction>,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        let base = match mode {
            CreationMode::CreateOrReplace => base::of_replacement(read, &app_transactions, environment)?,
            CreationMode::ErrorIfExists | CreationMode::Ignore => read.refresh()?,
        };
        Self::define_at(read.storage(), Some(base), definition, mode, app_transactions, environment)
    }

    /// Begins to define the table on exactly `base`; `None` means that the table does not exist yet.
    fn define_at(
        storage: &Storage,
        base: Option<Snapshot>,
        definition: &TableDefinition,
        mode: CreationMode,
        app_transactions: Vec<SetTransaction>,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        let located = |error: Error| error.in_table(storage.url());
        check_distinct(&app_transactions).map_err(located)?;
        let (target, evolved, spec, already_applied) = match base {
            None => {
                let table = definition.resolve(environment).map_err(located)?;
                let spec = spec_of(&table).map_err(located)?;
                (Target::New(Box::new(table)), None, spec, None)
            }
            Some(_) if mode == CreationMode::Ignore => return Ok(None),
            Some(base) => {
                let at_version = |error: Error| located(error.at_version(base.version()));
                let applied = AlreadyApplied::in_snapshot(&base, &app_transactions)?;
                if mode == CreationMode::ErrorIfExists && applied.is_none() {
                    return Err(at_version(Error::new(
                        ErrorKind::TableAlreadyExists,
                        "the table already exists",
                    ))
                    .with_hint("choose a mode that leaves the table as it is, or one that replaces it"));
                }
                let (table, spec) = match applied {
                    Some(_) => (None, TableWriteSpec::of(&base).map_err(at_version)?),
                    None => {
                        let table = definition.replacing(&base, environment).map_err(at_version)?;
                        let spec = spec_of(&table).map_err(at_version)?;
                        (Some(table), spec)
                    }
                };
                (Target::Existing(base), table, spec, applied)
            }
        };
        Ok(Some(Self {
            storage: storage.clone(),
            target,
            mode: match mode {
                CreationMode::CreateOrReplace => SaveMode::Overwrite,
                CreationMode::ErrorIfExists => SaveMode::ErrorIfExists,
                CreationMode::Ignore => SaveMode::Ignore,
            },
            definition: Some(mode),
            partition_overwrite: PartitionOverwrite::Static,
            replaced: None,
            replace_where: None,
            reads: RowsRead::Nothing,
            evolved,
            spec,
            progress: app_transactions,
            already_applied,
            skips_empty: false,
            environment: environment.clone(),
        }))
    }

    /// Returns the description of a commit with a table definition, as the JVM implementation records it. `as_select`
    /// says whether rows are written as well.
    pub fn definition_operation(&self, as_select: bool) -> Operation {
        let mode = self.definition.unwrap_or(CreationMode::ErrorIfExists);
        match (&self.target, &self.evolved) {
            (_, Some(table)) => operation(mode, as_select, table),
            (Target::New(table), None) => operation(mode, as_select, table),
            (Target::Existing(_), None) => Operation::new("WRITE"),
        }
    }
}
