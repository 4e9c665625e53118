//! The limit on the memory for the values of an expression, which users can raise or lower.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::limits::EXPRESSION_BYTES;
use crate::runtime::byte_size::bytes_of;

const VARIABLE: &str = "DELTALOG_EXPRESSION_BYTES";

/// Returns how many bytes of memory the values of an expression may use at the same time: the value of the environment
/// variable, which is read once, or `limits::EXPRESSION_BYTES`.
///
/// # Errors
/// InvalidArgument if the variable is not a number of bytes.
pub fn expression_bytes() -> Result<usize> {
    static ALLOWED: OnceLock<std::result::Result<usize, String>> = OnceLock::new();
    match ALLOWED.get_or_init(|| of_variable(std::env::var_os(VARIABLE).as_deref())) {
        Ok(bytes) => Ok(*bytes),
        Err(text) => Err(Error::invalid_argument(format!("the variable {VARIABLE} is not a size: '{text}'"))
            .with_hint("write a whole number and a unit, such as '512MiB'")),
    }
}

fn of_variable(value: Option<&std::ffi::OsStr>) -> std::result::Result<usize, String> {
    let Some(value) = value else { return Ok(EXPRESSION_BYTES) };
    let text = value.to_string_lossy();
    let bytes = bytes_of(&text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_number_of_bytes() {
        assert_eq!(of_variable(None), Ok(EXPRESSION_BYTES));
        for (text, bytes) in [("512MiB", 512 << 20), ("4096", 4096), (" 2 gb ", 2 << 30)] {
            assert_eq!(of_variable(Some(text.as_ref())), Ok(bytes), "{text}");
        }
        for text in ["", "0", "much", "-1", "1.5GiB", "99999999999TiB"] {
            assert_eq!(of_variable(Some(text.as_ref())), Err(text.to_owned()), "{text}");
        }
    }
}
