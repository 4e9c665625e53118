//! What real writers spell loosely, read as it is meant.

use serde::{Deserialize, Deserializer};

/// A field that may be `null` where the protocol has an empty map or list.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
