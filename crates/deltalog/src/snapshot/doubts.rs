//! The tables in which a checksum file turned out to be wrong.
//!
//! Checksums are derived from earlier ones, so the checksums of other versions may be wrong as well, even checksums
//! that are being derived at this moment. After the files of one version were counted, only the checksum of that
//! version is certainly right.
//!
//! - All handles of a table in this process share the doubt, including handles that were opened before. If another
//!   table replaces this one, the doubt also applies to it, until its versions are newer.
//! - Only the newest doubts are kept. If one is forgotten, the next checkpoint counts the files again.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::runtime::per_process::PerProcess;
use crate::storage::Storage;

/// The maximum number of tables with doubts that are kept.
const MOST_TABLES: usize = 64;

static DOUBTS: PerProcess<Mutex<VecDeque<Doubt>>> = PerProcess::new();

/// The versions of a table whose checksums may be wrong.
struct Doubt {
    /// The table. Its store is kept open, because the id of a store is an address in memory: after the store was
    /// closed, another store could get the same id.
    table: Storage,
    newest: u64,
    /// The version whose files were counted.
    except: u64,
}

impl Doubt {
    fn is_about(&self, table: &Storage) -> bool {
        self.table.store_id() == table.store_id() && self.table.root() == table.root()
    }
}

fn doubts() -> MutexGuard<'static, VecDeque<Doubt>> {
    DOUBTS.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that the checksums of a table's versions up to `newest` may be wrong. The version `except` is left out: its
/// files are about to be counted for its checksum.
pub(crate) fn doubt_checksums(table: &Storage, newest: u64, except: u64) {
    let mut doubts = doubts();
    let forgotten = match doubts.iter().position(|doubt| doubt.is_about(table)) {
        Some(index) => doubts.remove(index),
        None if doubts.len() >= MOST_TABLES => doubts.pop_front(),
        None => None,
    };
    doubts.push_back(Doubt { table: table.clone(), newest, except });
    // A store is closed after the lock is released.
    drop(doubts);
    drop(forgotten);
}

/// Returns whether the checksum of a version of a table may be wrong.
pub(crate) fn is_checksum_doubted(table: &Storage, version: u64) -> bool {
    let is_doubted = |doubt: &Doubt| version <= doubt.newest && version != doubt.except;
    doubts().iter().any(|doubt| doubt.is_about(table) && is_doubted(doubt))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use url::Url;

    use super::*;

    #[test]
    fn a_doubt_is_about_one_table_and_spares_the_version_that_was_counted() {
        let open = || {
            let store = Arc::new(InMemory::new());
            Storage::with_immediate_store(Url::parse("memory:///t").unwrap(), store).unwrap()
        };
        let doubted = |table: &Storage| [2, 3, 7, 8].map(|version| is_checksum_doubted(table, version));
        let (table, other) = (open(), open());
        assert_eq!(doubted(&table), [false; 4]);
        doubt_checksums(&table, 7, 3);
        assert_eq!((doubted(&table.clone()), doubted(&other)), ([true, false, true, false], [false; 4]));
        doubt_checksums(&table, 2, 1);
        assert_eq!(doubted(&table), [true, false, false, false]);
        drop(table);
        // An allocator soon reuses memory that was freed.
        for _ in 0..100 {
            assert_eq!(doubted(&open()), [false; 4]);
        }
    }
}
