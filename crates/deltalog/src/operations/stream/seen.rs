//! Whether the log still reaches as far as a stream has read it.

use std::time::Duration;

use super::offset::Index;
use super::table_stream::{State, TableStream};
use super::walk::Position;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::environment::Environment;

impl TableStream {
    /// Checks that the versions up to a place from which the stream goes on are there.
    ///
    /// # Errors
    /// As [`ensure_seen`].
    pub(super) fn ensure_reached(&self, state: &mut State, place: Position) -> Result<()> {
        // Nothing of the version was read before its base.
        let is_base = !place.is_initial && place.index <= Some(Index::Base);
        let version = if is_base { place.version.saturating_sub(1) } else { place.version };
        ensure_seen(state, version, self.environment())
    }
}

/// Checks that a version is there that a stream has seen, perhaps in another process. Looks at once if it is newer than
/// the newest that is known.
///
/// # Errors
/// `VersionNotFound`; errors of the store.
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
