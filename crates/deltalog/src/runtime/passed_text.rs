//! Strings that one process passes to another. Each contains the version of its format.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Parses a string that `to_json` of a `T` has returned. Refuses a string whose format version is not supported, before
/// other fields are read. `what` describes the expected string.
pub(crate) fn parse<T: DeserializeOwned>(json: &str, what: &str, format: u32) -> Result<T> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let foreign = |error| {
        Error::invalid_argument(format!("the text is not {what}"))
            .with_source(error)
            .with_hint(format!("pass a string that {}.to_json returned", name_of::<T>()))
    };
    let head: Head = serde_json::from_str(json).map_err(foreign)?;
    if head.format != format {
        return Err(Error::invalid_argument(format!(
            "{what} has format version {}, but this version of deltalog needs format version {format}",
            head.format
        ))
        .with_hint("install the same version of deltalog for the coordinator and all workers"));
    }
    serde_json::from_str(json).map_err(foreign)
}

/// Returns the name of a type without its path.
fn name_of<T>() -> &'static str {
    let path = std::any::type_name::<T>();
    path.rsplit("::").next().unwrap_or(path)
}
