//! Parses the location of a table, which is a path or a URL, and returns it as a URL.

use std::io;
use std::path::{Component, Path, PathBuf};

use url::Url;

use crate::error::{Error, Result};
use crate::protocol::path;

/// Parses a location: a URL with a scheme, or a path of the local file system, which is made absolute.
///
/// # Errors
/// `InvalidArgument` for an empty string and for an invalid URL.
pub fn parse_location(uri: &str) -> Result<Url> {
    if uri.is_empty() {
        return Err(
            Error::invalid_argument("the table's location is empty").with_hint("pass a path or a URL")
        );
    }
    match uri.split_once(':') {
        // Hadoop writes file:/path, and other software writes file:///path. Percent escapes are decoded in both.
        Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with('/') => {
            let url = Url::parse(uri)
                .map_err(|error| Error::invalid_argument("the location is not a URL").with_source(error))?;
            if url.scheme() == "file" && url.host().is_some() {
                return Err(Error::invalid_argument(format!("the location {url} names a host"))
                    .with_hint("write file:///path with three slashes"));
            }
            Ok(url)
        }
        _ => from_path(uri),
    }
}

fn is_scheme(text: &str) -> bool {
    // A single letter before the colon is a Windows drive, not a scheme.
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn from_path(path: &str) -> Result<Url> {
    let bad = || Error::invalid_argument(format!("the location '{path}' is not a path"));
    let absolute = std::path::absolute(path).map_err(|error| bad().with_source(error))?;
    // `absolute` keeps "..". It must be resolved before the path becomes a URL: a URL resolves ".." without regard to
    // links, so it could lead to a different place than the path does in the file system.
    let has_parent = absolute.components().any(|part| part == Component::ParentDir);
    let resolved = if has_parent {
        resolve_parents(&absolute).map_err(|error| bad().with_source(error))?
    } else {
        absolute
    };
    Url::from_directory_path(resolved).map_err(|()| bad())
}

/// Returns `path` without "..". Links are followed as far as the path exists.
fn resolve_parents(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                match resolved.canonicalize() {
                    Ok(real) => resolved = real,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                resolved.pop();
            }
            part => resolved.push(part),
        }
    }
    Ok(resolved)
}

/// Returns the URL for messages: without user information, query string and trailing slash.
pub(crate) fn redacted(url: &Url) -> String {
    path::redacted(url.as_str()).trim_end_matches('/').to_owned()
}

/// Returns the URL of `path`, a decoded relative path below `root`, for messages.
pub(crate) fn join(root: &Url, path: &str) -> String {
    let mut url = root.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path.split('/'));
    }
    redacted(&url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_converted_to_urls_and_back() {
        let url = parse_location("/data/my table/100%").unwrap();
        assert_eq!(url.to_file_path().unwrap(), Path::new("/data/my table/100%"));
        assert_eq!(redacted(&url), "file:///data/my%20table/100%25");
    }

    #[test]
    fn both_spellings_of_a_file_url_are_accepted() {
        assert_eq!(redacted(&parse_location("file:/a/b").unwrap()), "file:///a/b");
        assert_eq!(redacted(&parse_location("file:///a/b/").unwrap()), "file:///a/b");
        assert!(parse_location("file://host/a").is_err());
    }

    #[test]
    fn the_text_has_no_credentials() {
        let url = parse_location("s3://key:secret@bucket/t?token=abc").unwrap();
        assert_eq!(redacted(&url), "s3://bucket/t");
        let url = parse_location("abfss://container@account.dfs.core.windows.net/t?sig=abc").unwrap();
        assert_eq!(redacted(&url), "abfss://container@account.dfs.core.windows.net/t");
        let url = parse_location("s3://key@bucket/t").unwrap();
        assert_eq!(redacted(&url), "s3://bucket/t");
    }

    #[test]
    fn a_colon_does_not_make_a_scheme() {
        assert_eq!(parse_location("/a/b:c").unwrap().to_file_path().unwrap(), Path::new("/a/b:c"));
    }

    #[test]
    #[cfg(unix)]
    fn parent_directories_are_resolved_as_by_the_file_system() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        let url = |relative: &str| {
            parse_location(root.join(relative).to_str().unwrap()).unwrap().to_file_path().unwrap()
        };
        // `..` leads to the parent of the link's target, even for a path that does not exist yet.
        assert_eq!(url("link/../t"), root.join("a/t"));
        assert_eq!(url("new/../t/u"), root.join("t/u"));
        assert_eq!(url("a/b/../../t"), root.join("t"));
    }

    #[test]
    fn joins_decoded_segments() {
        let root = parse_location("/t").unwrap();
        assert_eq!(join(&root, "a=b%20c/x y.parquet"), "file:///t/a=b%2520c/x%20y.parquet");
    }
}
