//! Deserialization of fields that other writers spell loosely.

use serde::{Deserialize, Deserializer};

/// Deserializes a field that may be `null` where the protocol has an empty map or list.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
