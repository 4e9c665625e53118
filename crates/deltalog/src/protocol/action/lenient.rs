//! Deserializes fields that some writers do not write exactly as the protocol requires.

use serde::{Deserialize, Deserializer};

/// Deserializes a field that may be `null` where the protocol requires a map or a list, which is then empty.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
