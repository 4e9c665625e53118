//! Checks the location of a clone.

use crate::error::{Error, Result};
use crate::protocol::{PathResolver, TableFeature};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// Refuses to clone a table onto itself, and to place one of the two tables inside of the other's directory, where
/// their files would be mixed.
pub(super) fn check_places(source: &Snapshot, target: &Storage, is_shallow: bool) -> Result<()> {
    if source.protocol().supports(&TableFeature::CatalogManaged) {
        return Err(Error::unsupported("a table that a catalog manages cannot be cloned")
            .with_hint("read it, and write its rows to another table"));
    }
    let resolver = PathResolver::new(target.root())?;
    let (from, to) = (source.resolver(), &resolver);
    if from.is_at(to) {
        return Err(Error::invalid_argument("a table cannot be cloned onto itself")
            .with_hint("choose another location; RESTORE makes an earlier version the newest one"));
    }
    if from.contains_table(to) || to.contains_table(from) {
        return Err(Error::invalid_argument(format!(
            "the clone and its source, {}, must not be inside of each other",
            source.storage().url()
        ))
        .with_hint("choose a location next to the source"));
    }
    if is_shallow && !from.is_in_store_of(to) {
        return Err(Error::unsupported(format!(
            "a shallow clone must be in the same store as its source, {}",
            source.storage().url()
        ))
        .with_hint("make a deep clone"));
    }
    Ok(())
}
