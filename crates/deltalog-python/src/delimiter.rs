//! The character between the values of a CSV record.

use deltalog::{Error, Result};

/// Returns the byte of a delimiter.
///
/// # Errors
/// Returns `InvalidArgument` for a delimiter that is not a single ASCII character, or is a quote or line end.
pub(crate) fn delimiter_of(text: &str) -> Result<u8> {
    match *text.as_bytes() {
        [b'"' | b'\n' | b'\r'] => {
            Err(Error::invalid_argument("the delimiter cannot be a quote or an end of line"))
        }
        [delimiter] => Ok(delimiter),
        _ => Err(Error::invalid_argument("the delimiter is not a single ASCII character")),
    }
}
