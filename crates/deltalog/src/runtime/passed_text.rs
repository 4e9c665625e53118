//! Strings that one process passes to another. Each contains the version of its format.

use serde::Deserialize;

use crate::error::{Error, Result};

/// Refuses a string whose format version is not supported, before other fields are read. `what` describes the expected
/// string.
pub(crate) fn check_format(json: &str, what: &str, format: u32) -> Result<()> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let head: Head = serde_json::from_str(json)
        .map_err(|error| Error::invalid_argument(format!("the text is not {what}")).with_source(error))
        .map_err(|error| error.with_hint("pass a string that to_json returned"))?;
    if head.format == format {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{what} has format version {}, but this version of deltalog needs format version {format}",
        head.format
    ))
    .with_hint("install the same version of deltalog for the coordinator and all workers"))
}
