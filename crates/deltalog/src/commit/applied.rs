//! Recognizes writes that an application has already committed. Protocol: "Transaction Identifiers".
//!
//! An application numbers its writes, and each commit records the number. If the table has already recorded the number
//! of a write, or a higher one, the write is a repetition and must not add its rows again. The outcome is then
//! neither a commit nor a conflict.

use super::conflict::ConflictReason;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::SetTransaction;
use crate::snapshot::Snapshot;

/// A write that has no effect, because the table has already recorded the same version of the application or a later
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlreadyApplied {
    /// The application.
    pub app_id: String,
    /// The version that the application gave to the skipped write.
    pub version: i64,
    /// The application's version that the table has recorded.
    pub recorded: i64,
    /// The table version in which that record was found.
    pub table_version: u64,
}

impl AlreadyApplied {
    /// Returns the first entry of `wanted` that `base` already records, with the same version or a later one.
    ///
    /// # Errors
    /// `CorruptLog`; also errors from the store.
    pub(crate) fn in_snapshot(base: &Snapshot, wanted: &[SetTransaction]) -> Result<Option<Self>> {
        if wanted.is_empty() {
            return Ok(None);
        }
        Ok(Self::find(&base.app_transactions()?, wanted, base.version()))
    }

    /// Returns the error for a caller that treats a repeated write as a failure.
    pub(crate) fn into_error(self, table: String) -> Error {
        let text = format!(
            "the application '{}' has already recorded version {}, so that version {} is not written again",
            self.app_id, self.recorded, self.version
        );
        Error::new(ErrorKind::CommitConflict, text)
            .in_table(table)
            .at_version(self.table_version)
            .with_reason(ConflictReason::AppTransaction(self.app_id).name())
            .with_hint("nothing was committed; skip this write, or record a later version")
    }

    /// Returns the first entry of `wanted` that is already in `recorded`, the progress of applications at
    /// `table_version`, with the same version or a later one.
    pub(super) fn find(
        recorded: &[SetTransaction],
        wanted: &[SetTransaction],
        table_version: u64,
    ) -> Option<Self> {
        wanted.iter().find_map(|wanted| {
            let same = recorded.iter().find(|recorded| recorded.app_id == wanted.app_id)?;
            (same.version >= wanted.version).then(|| Self {
                app_id: wanted.app_id.clone(),
                version: wanted.version,
                recorded: same.version,
                table_version,
            })
        })
    }
}

/// Refuses `progress` if it contains an application twice.
///
/// # Errors
/// `InvalidArgument` with the name of the application.
pub(crate) fn check_distinct(progress: &[SetTransaction]) -> Result<()> {
    for (index, one) in progress.iter().enumerate() {
        if progress.iter().take(index).any(|other| other.app_id == one.app_id) {
            return Err(Error::invalid_argument(format!("the application '{}' is named twice", one.app_id))
                .with_hint("record one version for each application"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_version_or_a_later_one_was_applied() {
        let progress = |pairs: &[(&str, i64)]| -> Vec<SetTransaction> {
            pairs.iter().map(|(app, version)| SetTransaction::new(*app, *version)).collect()
        };
        let recorded = progress(&[("a", 5), ("b", -3)]);
        let find = |wanted: &[(&str, i64)]| {
            let found = AlreadyApplied::find(&recorded, &progress(wanted), 7);
            found.map(|found| (found.app_id, found.version, found.recorded, found.table_version))
        };
        for (wanted, expected) in [(4, true), (5, true), (6, false), (i64::MIN, true), (i64::MAX, false)] {
            assert_eq!(find(&[("a", wanted)]), expected.then(|| ("a".to_owned(), wanted, 5, 7)), "{wanted}");
        }
        assert_eq!(find(&[("A", 1), ("c", 1)]), None, "the case of names matters");
        assert_eq!(
            find(&[("a", 6), ("b", -3)]),
            Some(("b".to_owned(), -3, -3, 7)),
            "one repetition is enough"
        );
        assert!(check_distinct(&recorded).is_ok());
        assert!(check_distinct(&progress(&[("a", 1), ("b", 1), ("a", 2)])).is_err());
    }
}
