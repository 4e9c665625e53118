//! Reads the commits of a listing, several at once. (PROTOCOL, "Delta Log Entries".)

use super::commit::Commit;
use crate::error::{Error, Result};
use crate::log::CommitFile;
use crate::runtime::parallel;
use crate::storage::Storage;

/// The number of commits that are read at once. It may exceed the number of cores, because the threads mostly wait for
/// the store.
const AT_ONCE: usize = 8;

/// Reads commits without the statistics of their files and calls `visit` with each, in the order of `files`, until it
/// returns false. A commit that cannot be read is passed to `visit` as an error.
/// At most [`AT_ONCE`] commits are in memory at a time. When `visit` returns false, some commits after that one may
/// already have been read.
///
/// # Errors
/// The errors of `visit`.
pub(crate) fn visit_commits(
    storage: &Storage,
    files: &[CommitFile],
    mut visit: impl FnMut(CommitFile, Result<Commit>) -> Result<bool>,
) -> Result<()> {
    for some in files.chunks(AT_ONCE) {
        let read = |file: &CommitFile| Ok::<_, Error>(Commit::read_without_stats(storage, *file));
        for (file, commit) in some.iter().zip(parallel::each(some, AT_ONCE, read)?) {
            if !visit(*file, commit)? {
                return Ok(());
            }
        }
    }
    Ok(())
}
