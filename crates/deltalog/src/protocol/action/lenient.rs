//! Deserializes fields that some writers do not write exactly as the protocol requires.

use serde::{Deserialize, Deserializer};

/// Deserializes a field that some writers write as `null` although the protocol requires a value. `null` becomes the
/// default value, such as an empty map.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
