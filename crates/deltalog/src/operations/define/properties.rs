//! Refuses table properties that users cannot set, or that are not implemented. (Protocol: "Change Metadata".)
//!
//! - A property whose name begins with `delta.` must be known, and its value must be allowed. Properties that users
//!   invent can have any other name, and any value.
//! - Properties that the table maintains itself, such as the highest column id, cannot be set or removed.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::protocol::PROTECTED_BEFORE;
use crate::protocol::properties::check_properties;
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};

/// The properties that the table maintains itself.
const KEPT_BY_THE_TABLE: [&str; 6] = [
    "delta.columnMapping.maxColumnId",
    ENABLEMENT_TIMESTAMP,
    ENABLEMENT_VERSION,
    PROTECTED_BEFORE,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
];

/// Refuses properties that users cannot set.
///
/// # Errors
/// Returns `InvalidArgument` for an unknown property whose name begins with `delta.`, for a value that is not allowed,
/// and for a property that the table maintains itself. Returns `Unsupported` for a property that this crate does not
/// implement.
pub(crate) fn ensure_settable(properties: &BTreeMap<String, String>) -> Result<()> {
    check_properties(properties)?;
    for (name, value) in properties {
        ensure_not_kept(name)?;
        ensure_implemented(name, value)?;
    }
    Ok(())
}

/// Refuses a property that the table maintains itself.
///
/// # Errors
/// Returns `InvalidArgument` for such a property.
pub(crate) fn ensure_not_kept(name: &str) -> Result<()> {
    match KEPT_BY_THE_TABLE.contains(&name) {
        true => Err(Error::invalid_argument(format!("the table property '{name}' cannot be set or removed"))
            .with_hint("leave it out: it follows from other properties")),
        false => Ok(()),
    }
}

fn ensure_implemented(name: &str, value: &str) -> Result<()> {
    let is_used = match name {
        "delta.rowTrackingSuspended" => value.trim().eq_ignore_ascii_case("true"),
        "delta.universalFormat.enabledFormats" => !value.trim().is_empty(),
        _ => false,
    };
    match is_used {
        true => {
            Err(Error::unsupported(format!("the table property '{name}' = '{value}' is not implemented"))
                .with_hint("leave it out, or set it with a client that implements it"))
        }
        false => Ok(()),
    }
}
