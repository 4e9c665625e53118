//! Features that a table supports no longer. Protocol: "Supported Features", "Action Reconciliation".
//!
//! A client without the feature must be able to work with the table afterwards, so nothing may be left that only the
//! feature explains:
//!
//! | feature | what must be gone |
//! | --- | --- |
//! | `checkConstraints` | the constraints: the user drops them |
//! | `inCommitTimestamp` | its properties: they are removed; times are those of the files again |
//! | `vacuumProtocolCheck` | nothing: it leaves no traces |
//!
//! Others leave traces in data files or in earlier versions that stay readable. They are refused: their removal
//! rewrites files or needs the feature `checkpointProtection`.

use super::draft::Draft;
use super::features;
use crate::error::{Error, Result};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::protocol::TableFeature;
use crate::transaction::Operation;

/// Drops the feature `name`.
///
/// # Errors
/// `InvalidArgument` if there is no such feature, if the table does not support it, or if something of it is left.
/// `Unsupported` for a feature that cannot be dropped here. Also errors of the store.
pub(super) fn drop(draft: &mut Draft<'_>, name: &str) -> Result<Operation> {
    let feature = features::named(name)?;
    if !draft.base.protocol().writer_features().contains(&feature) {
        return Err(Error::invalid_argument(format!("the table does not support the feature '{feature}'")));
    }
    let properties = &mut draft.metadata.configuration;
    match feature {
        TableFeature::CheckConstraints if feature.is_active(draft.base.metadata())? => {
            return Err(Error::invalid_argument(format!(
                "the feature '{feature}' cannot be dropped: the table has constraints"
            ))
            .with_hint("drop the constraints first"));
        }
        TableFeature::CheckConstraints | TableFeature::VacuumProtocolCheck => {}
        TableFeature::InCommitTimestamp => {
            for property in ["delta.enableInCommitTimestamps", ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION] {
                properties.remove(property);
            }
        }
        _ => {
            return Err(Error::unsupported(format!(
                "the feature '{feature}' cannot be dropped, because files or earlier versions of the table may need it"
            ))
            .with_hint("drop it with a client that rewrites the files and truncates the history"));
        }
    }
    draft.dropped = Some(feature.clone());
    Ok(Operation::new("DROP FEATURE")
        .parameter("featureName", feature.name())
        .parameter("truncateHistory", false))
}
