//! Finds a commit by its transaction id. Protocol: "Commit Provenance Information".

use crate::error::{Error, ErrorKind, Result};
use crate::log::{CommitFile, LOG_DIRECTORY, read_commit_info};
use crate::protocol::log_name::LogFileName;
use crate::runtime::parallel;
use crate::storage::Storage;

/// The number of commits that are read at the same time. It may exceed the number of cores, because the threads mostly
/// wait for the store.
const COMMITS_AT_ONCE: usize = 8;

/// The maximum number of consecutive commits that may be missing from a listing that lags behind by seconds. A larger
/// gap is a gap in the log itself, for example below a file whose version is far too high.
const MOST_LEFT_OUT: u64 = 10_000;

/// Returns the version of the commit with the id `transaction_id`; `None` if the log has no such commit.
///
/// After an error of kind [`CommitStateUnknown`](ErrorKind::CommitStateUnknown), pass the error's
/// [`transaction_id`](crate::Error::transaction_id) to find out whether the commit succeeded. `None` is final once none
/// of the writer's requests can still be in flight. Commits that were cleaned up are not found.
///
/// ```
/// use deltalog::find_commit;
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// assert_eq!(find_commit(&storage, "the id of another transaction")?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `CorruptLog` for a commit that cannot be read, if no newer commit has the id; also errors from the store.
pub fn find_commit(storage: &Storage, transaction_id: &str) -> Result<Option<u64>> {
    let listed = storage.list_directory_after(LOG_DIRECTORY, "")?;
    let listed: Vec<u64> = listed
        .iter()
        .filter_map(|file| match LogFileName::parse(&file.name) {
            Some(LogFileName::Commit(version)) => Some(version),
            _ => None,
        })
        .collect();
    // A listing that lags behind may show a commit without its neighbors. So commits beyond both ends of the listing
    // are requested by name, and all commits in between are read whether or not they were listed.
    let exists = |version| Ok::<_, Error>(storage.head(&LogFileName::Commit(version).path())?.is_some());
    let mut first = listed.first().copied().unwrap_or_default();
    while first > 0 && exists(first - 1)? {
        first -= 1;
    }
    let mut end = listed.last().map_or(0, |version| version + 1);
    while exists(end)? {
        end += 1;
    }
    let mut versions: Vec<u64> = Vec::new();
    let mut next = first;
    for version in listed.iter().copied().chain([end]) {
        if version.saturating_sub(next) <= MOST_LEFT_OUT {
            versions.extend(next..version);
        } else {
            while exists(next)? {
                versions.push(next);
                next += 1;
            }
        }
        versions.extend(Some(version).filter(|version| *version < end));
        next = version + 1;
    }
    versions.reverse();
    let has_id = |version: &u64| -> Result<bool> {
        match read_commit_info(storage, CommitFile::named(*version)) {
            Ok(info) => Ok(info.and_then(|info| info.txn_id).as_deref() == Some(transaction_id)),
            // The commit was cleaned up.
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(false),
            Err(error) => Err(error),
        }
    };
    // A commit above a gap may be a stray file: a copy of another commit, or a damaged one. A commit below the gap is
    // preferred.
    let mut above_gap: Option<Result<u64>> = None;
    for versions in versions.chunks(COMMITS_AT_ONCE) {
        // An error in an older commit does not matter if a newer commit has the id.
        let found = parallel::each(versions, COMMITS_AT_ONCE, |version| Ok::<_, Error>(has_id(version)))?;
        for (version, found) in versions.iter().zip(found) {
            let answer = match found {
                Ok(false) => continue,
                Ok(true) => Ok(*version),
                Err(error) if error.kind() == ErrorKind::CorruptLog => Err(error),
                Err(error) => return Err(error),
            };
            let follows = version.checked_sub(1).map(exists).transpose()?;
            if follows == Some(true) {
                return answer.map(Some);
            }
            above_gap = Some(match above_gap {
                Some(Ok(newer)) if answer.is_err() => Ok(newer),
                _ => answer,
            });
        }
    }
    above_gap.transpose()
}
