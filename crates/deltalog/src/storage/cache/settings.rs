//! Reads the directory and the size of the cache from the store's options `cache_dir` and `cache_size`, or from the
//! environment variables `DELTALOG_CACHE_DIR` and `DELTALOG_CACHE_SIZE`.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::runtime::byte_size::bytes_of;

/// The names of the options.
pub(in crate::storage) const NAMES: [&str; 2] = [
    // The directory of the cache on the local disk, as an absolute path. Also `DELTALOG_CACHE_DIR`.
    "cache_dir",
    // The maximum size of the cache, such as `20GiB`. Also `DELTALOG_CACHE_SIZE`. Default: 10 GiB.
    "cache_size",
];
const VARIABLES: [&str; 2] = ["DELTALOG_CACHE_DIR", "DELTALOG_CACHE_SIZE"];
/// The maximum size if none is set.
const DEFAULT: u64 = 10 << 30;
/// The lower limit for the maximum size. There must be room for several pieces.
const LEAST: u64 = 64 << 20;

/// The settings of a cache that the user has requested.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::storage) struct CacheSettings {
    pub(in crate::storage) directory: PathBuf,
    pub(in crate::storage) limit: u64,
}

impl CacheSettings {
    /// Returns the settings of the cache from the options or the environment variables. If the option `cache_dir` is
    /// empty, the cache that the environment variables configure is turned off.
    ///
    /// # Errors
    /// `InvalidArgument` for a size that is invalid or too small, for a size without a directory, and for a relative
    /// path.
    pub(in crate::storage) fn new(directory: Option<String>, size: Option<String>) -> Result<Option<Self>> {
        Self::with_variables(directory, size, |name| std::env::var(name).ok())
    }

    fn with_variables(
        directory: Option<String>,
        size: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>> {
        let [directory_variable, size_variable] = VARIABLES;
        let size = match size {
            Some(size) => Some(("the storage option 'cache_size'", size)),
            None => variable(size_variable).map(|size| ("the variable DELTALOG_CACHE_SIZE", size)),
        };
        let limit = size.as_ref().map(|(what, size)| bytes(what, size)).transpose()?;
        match directory.or_else(|| variable(directory_variable)) {
            Some(directory) if directory.is_empty() => Ok(None),
            Some(directory) => {
                let directory = PathBuf::from(directory);
                if !directory.is_absolute() {
                    return Err(Error::invalid_argument(format!(
                        "the directory of the cache is not an absolute path: '{}'",
                        directory.display()
                    ))
                    .with_hint(
                        "processes with other working directories would not share it, and '~' is not expanded here",
                    ));
                }
                Ok(Some(Self { directory, limit: limit.unwrap_or(DEFAULT) }))
            }
            None if size.is_some_and(|(what, _)| what.contains("option")) => Err(Error::invalid_argument(
                "the storage option 'cache_size' has no effect without 'cache_dir'",
            )
            .with_hint("pass the directory of the cache as well")),
            None => Ok(None),
        }
    }
}

fn bytes(what: &str, text: &str) -> Result<u64> {
    match bytes_of(text) {
        Some(size) if size >= LEAST => Ok(size),
        Some(_) => Err(Error::invalid_argument(format!("{what} is less than 64MiB: '{text}'"))
            .with_hint("pass a larger size, or leave out the directory of the cache")),
        None => Err(Error::invalid_argument(format!("{what} is not a size: '{text}'"))
            .with_hint("write a whole number and a unit, such as '10GiB'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(
        directory: Option<&str>,
        size: Option<&str>,
        variables: [&str; 2],
    ) -> Result<Option<CacheSettings>> {
        let variable = |name: &str| {
            let index = VARIABLES.iter().position(|known| *known == name)?;
            Some(variables[index].to_owned()).filter(|value| value != "unset")
        };
        CacheSettings::with_variables(directory.map(str::to_owned), size.map(str::to_owned), variable)
    }

    fn of(directory: &str, limit: u64) -> Option<CacheSettings> {
        Some(CacheSettings { directory: directory.into(), limit })
    }

    #[test]
    fn options_override_variables() {
        let unset = ["unset", "unset"];
        assert_eq!(settings(None, None, unset).unwrap(), None);
        assert_eq!(settings(Some("/a"), None, unset).unwrap(), of("/a", DEFAULT));
        assert_eq!(settings(Some("/a"), Some("1 GB"), ["/b", "2GiB"]).unwrap(), of("/a", 1 << 30));
        assert_eq!(settings(None, None, ["/b", "2tib"]).unwrap(), of("/b", 2 << 40));
        assert_eq!(settings(None, Some("67108864"), ["/b", "2GiB"]).unwrap(), of("/b", 64 << 20));
        assert_eq!(settings(Some(""), None, ["/b", "unset"]).unwrap(), None);
        assert_eq!(settings(None, None, ["unset", "2GiB"]).unwrap(), None);
    }

    #[test]
    fn a_relative_directory_is_an_error() {
        for bad in ["cache", "./cache", "~/cache"] {
            for (option, variable) in [(Some(bad), "unset"), (None, bad)] {
                let error = settings(option, None, [variable, "unset"]).unwrap_err();
                assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{bad}");
                let text = format!("the directory of the cache is not an absolute path: '{bad}'");
                assert!(error.to_string().contains(&text), "{error}");
            }
        }
    }

    #[test]
    fn an_invalid_size_is_refused() {
        for bad in ["", "ten", "10 boxes", "-1GiB", "1.5GiB", "99999999999TiB", "63MiB", "0"] {
            let error = settings(Some("/a"), Some(bad), ["unset", "unset"]).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{bad}");
            assert!(
                error.to_string().contains(&format!(
                    "'cache_size' is {}",
                    if error.to_string().contains("less") { "less than 64MiB" } else { "not a size" }
                )),
                "{error}"
            );
        }
        let error = settings(Some("/a"), None, ["unset", "much"]).unwrap_err();
        assert!(error.to_string().contains("DELTALOG_CACHE_SIZE is not a size: 'much'"), "{error}");
        assert!(settings(None, Some("1GiB"), ["unset", "unset"]).is_err());
    }
}
