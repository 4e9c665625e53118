//! The version of a table that a provider reads.

use std::sync::{Mutex, PoisonError};

use arrow::datatypes::{Schema, SchemaRef};
use deltalog::{Error, ErrorKind, Result, Snapshot};

/// The version of a table that a provider reads: the version with which it was created, or a later one with the rows
/// that were inserted through the provider. The schema never changes, because plans refer to columns by position.
#[derive(Debug)]
pub(crate) struct Shown {
    schema: SchemaRef,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    snapshot: Snapshot,
    /// The newest version that was committed through the provider.
    committed: u64,
}

impl Shown {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let state = State { snapshot: snapshot.clone(), committed: snapshot.version() };
        Self { schema: snapshot.arrow_schema().clone(), state: Mutex::new(state) }
    }

    /// Returns the schema of the table.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Records that this version was committed through the provider.
    pub(crate) fn committed(&self, version: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.committed = state.committed.max(version);
    }

    /// Returns the version to read. After a commit through the provider, this reads the log.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` if another writer has changed the schema, and errors from reading the log.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        let (shown, committed) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.snapshot.clone(), state.committed)
        };
        if shown.version() >= committed {
            return Ok(shown);
        }
        let newer = shown.refresh()?;
        if !is_same(&self.schema, newer.arrow_schema()) {
            return Err(Error::new(ErrorKind::SchemaMismatch, "the schema of the table has changed")
                .in_table(newer.storage().url())
                .at_version(newer.version())
                .with_hint("open the table again"));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.snapshot.version() < newer.version() {
            state.snapshot = newer;
        }
        Ok(state.snapshot.clone())
    }
}

/// Returns whether two schemas have the same columns, ignoring comments and other metadata of columns.
fn is_same(one: &Schema, other: &Schema) -> bool {
    let column = |schema: &Schema| {
        let fields = schema.fields().iter();
        fields
            .map(|field| (field.name().clone(), field.data_type().clone(), field.is_nullable()))
            .collect::<Vec<_>>()
    };
    column(one) == column(other)
}
