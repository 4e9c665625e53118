//! Features that a table supports no longer. Protocol: "Supported Features", "Action Reconciliation".
//!
//! ```text
//!   the feature is not needed by another one ──► no trace is left in the table (`traces`)
//!     ──► for features of readers: none in an earlier version that can be read (`history`) ──► the protocol without it
//! ```
//!
//! - A client without the feature must be able to work with the table afterwards, so nothing may be left that only the
//!   feature explains.
//! - What only tells how the table is kept, such as row ids, is removed. What users have said about their data, such as
//!   a constraint, they remove themselves first.
//! - The metadata are committed as well, even if they stay the same: a commit that makes use of the feature meanwhile
//!   is a conflict.

mod history;
mod traces;

use super::draft::Draft;
use super::features;
use crate::error::{Error, Result};
use crate::protocol::{FeatureKind, TableFeature};
use crate::transaction::Operation;

/// Drops the feature `name`.
///
/// # Errors
/// `InvalidArgument` if there is no such feature, if the table does not support it, if another feature needs it, or if
/// the table or a version of it that can be read makes use of it. `Unsupported` for a feature that cannot be dropped
/// here. Also errors of the store.
pub(super) fn drop(draft: &mut Draft<'_>, name: &str) -> Result<Operation> {
    let feature = features::named(name)?;
    let supported = draft.base.protocol().writer_features();
    if !supported.contains(&feature) {
        return Err(Error::invalid_argument(format!("the table does not support the feature '{feature}'")));
    }
    if let Some(other) = supported.iter().find(|other| other.requires().contains(&feature)) {
        return Err(Error::invalid_argument(format!(
            "the feature '{feature}' cannot be dropped, because the feature '{other}' needs it"
        ))
        .with_hint(format!("drop the feature '{other}' first")));
    }
    traces::remove(draft, &feature)?;
    // `vacuumProtocolCheck` leaves nothing in any version.
    if feature.kind() == Some(FeatureKind::ReaderWriter) && feature != TableFeature::VacuumProtocolCheck {
        history::ensure_clean(draft.base, &feature)?;
        draft.depends_on_rows = true;
    }
    draft.dropped = Some(feature.clone());
    Ok(Operation::new("DROP FEATURE")
        .parameter("featureName", feature.name())
        .parameter("truncateHistory", false))
}
