//! Checks that the versions which a stream has read still exist. They may be lost, for example if a backup is
//! restored.

use std::time::Duration;

use super::offset::Index;
use super::table_stream::{State, TableStream};
use super::walk::Position;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::environment::Environment;

impl TableStream {
    /// Checks that all versions up to the position at which a stream continues exist.
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_seen`].
    pub(super) fn ensure_reached(&self, state: &mut State, place: Position) -> Result<()> {
        // At the base of a version, nothing of the version has been read yet, so only the version before it must
        // exist.
        let is_base = !place.is_initial && place.index <= Some(Index::Base);
        let version = if is_base { place.version.saturating_sub(1) } else { place.version };
        ensure_seen(state, version, self.environment())
    }
}

/// Checks that a version which the stream has seen, perhaps in another process, still exists. If this process does
/// not know the version, it looks for new versions at once.
///
/// # Errors
/// Returns `VersionNotFound` if the version does not exist, and errors from the store.
pub(super) fn ensure_seen(state: &mut State, version: u64, environment: &Environment) -> Result<()> {
    if version > state.commits.newest_version() {
        state.commits.look(environment, Duration::ZERO)?;
    }
    let newest = state.commits.newest_version();
    if version <= newest {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::VersionNotFound,
        format!(
            "the stream has seen version {version}, but the newest is version {newest}: the last commits are gone"
        ),
    )
    .at_version(version)
    .with_hint("restore the commits if that is possible, or begin with a new checkpoint"))
}
