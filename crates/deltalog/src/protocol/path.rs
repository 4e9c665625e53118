//! The one resolver of every path in a log: `add`, `remove`, `cdc`, deletion vectors, sidecars, hints. (PROTOCOL, "Add File and Remove File".)
//!
//! ```text
//! month=1/part-0%20a.parquet          relative          → month=1/part-0 a.parquet
//! s3a://bucket/table/part-0.parquet   below the table   → part-0.parquet
//! s3://bucket/other/part-0.parquet    below an allowed root, else refused
//! ```
//!
//! - A path is a URI: it is percent-decoded exactly once, before anything is checked, so that `%2E%2E` is `..` and `%2F` is `/`.
//! - Refused: `..` segments, NUL, an empty path, a malformed escape, bytes that are not UTF-8, foreign schemes and authorities, and absolute
//!   paths that are neither below the table nor below a root that the caller allowed.
//! - `.` segments and doubled slashes are dropped, as Hadoop's `Path` drops them. `?` and `#` are ordinary characters.
//! - `decode(encode(s)) = s` for every string.
//! - An error never shows user information or the query of a URI.

use std::borrow::Cow;
use std::fmt::Write as _;

use url::Url;

use crate::{Error, Result};

/// A path of the log, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogPath {
    /// Relative to the table's root: segments joined by `/`, without `.`, `..` and empty ones.
    Relative(String),
    /// Outside the table.
    Absolute(AbsolutePath),
}

/// A decoded path together with the store it lies in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsolutePath {
    scheme: String,
    authority: String,
    path: String,
}

impl AbsolutePath {
    /// The scheme, in its usual spelling: `s3` for `s3a` and `s3n`, `abfss` for `abfs`, and so on.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The bucket, or container and account; empty for local files.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The decoded path, beginning with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path as an encoded URI.
    pub fn to_uri(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, encode(&self.path))
    }

    fn from_url(url: &Url) -> Result<Self> {
        let decoded = decode(url.path())?;
        let path = segments(&decoded)?.into_iter().flat_map(|segment| ["/", segment]).collect();
        Ok(Self { scheme: canonical_scheme(url.scheme()), authority: canonical_authority(url.scheme(), url.authority()), path })
    }

    fn same_store(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.authority.eq_ignore_ascii_case(&other.authority)
    }

    /// What follows this root in `path`, when `path` lies below it.
    fn strip<'p>(&self, path: &'p Self) -> Option<&'p str> {
        if !self.same_store(path) {
            return None;
        }
        path.path.strip_prefix(&self.path)?.strip_prefix('/').filter(|rest| !rest.is_empty())
    }
}

/// Resolves the paths of one table's log.
#[derive(Debug, Clone)]
pub struct PathResolver {
    table: AbsolutePath,
    allowed: Vec<AbsolutePath>,
}

impl PathResolver {
    /// A resolver for the table at `table`.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the location is no hierarchical URL or has a `..` segment.
    pub fn new(table: &Url) -> Result<Self> {
        Ok(Self { table: root(table)?, allowed: Vec::new() })
    }

    /// Also allows absolute paths below `root`, as shallow clones need.
    ///
    /// # Errors
    /// As [`PathResolver::new`].
    pub fn allow(mut self, root_url: &Url) -> Result<Self> {
        self.allowed.push(root(root_url)?);
        Ok(self)
    }

    /// Decodes a path of the log and refuses it unless it lies below the table or an allowed root.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::ErrorKind::CorruptLog) for a path that no writer may write, [`Unsupported`](crate::ErrorKind::Unsupported) for one
    /// outside every root.
    pub fn resolve(&self, raw: &str) -> Result<LogPath> {
        let path = self.parse(raw)?;
        match &path {
            LogPath::Absolute(absolute) if !self.allowed.iter().any(|root| root.strip(absolute).is_some()) => {
                Err(Error::unsupported(format!("path '{}' in the log lies outside the table", redacted(raw)))
                    .with_hint("allow its root explicitly if the table is a shallow clone that you trust"))
            }
            _ => Ok(path),
        }
    }

    /// Decodes and normalises a path of the log without asking whether it may be read: the key by which replay compares files.
    ///
    /// Spellings of one file (`/t/a`, `file:/t/a`, `file:///t/a`, and `a` in the table `file:///t`) give equal results.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::ErrorKind::CorruptLog) for a path that no writer may write.
    pub fn parse(&self, raw: &str) -> Result<LogPath> {
        let refuse = |error: Error| error.at_path(redacted(raw));
        let (scheme, rest) = split_scheme(raw);
        let (authority, encoded_path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                (Some(authority), path)
            }
            None => (None, rest),
        };
        let decoded = decode(encoded_path).map_err(refuse)?;
        let segments = segments(&decoded).map_err(refuse)?;
        if segments.is_empty() {
            return Err(refuse(Error::corrupt_log("path in the log is empty")));
        }
        if scheme.is_none() && authority.is_none() && !decoded.starts_with('/') {
            return Ok(LogPath::Relative(segments.join("/")));
        }
        if !decoded.starts_with('/') {
            return Err(refuse(Error::corrupt_log("path in the log is a URI without a path")));
        }
        let path = format!("/{}", segments.join("/"));
        let absolute = match scheme {
            Some(scheme) => AbsolutePath {
                scheme: canonical_scheme(scheme),
                authority: canonical_authority(scheme, authority.unwrap_or_default()),
                path,
            },
            None => AbsolutePath {
                scheme: self.table.scheme.clone(),
                authority: authority.map_or_else(|| self.table.authority.clone(), |text| canonical_authority(&self.table.scheme, text)),
                path,
            },
        };
        Ok(match self.table.strip(&absolute) {
            Some(relative) => LogPath::Relative(relative.to_owned()),
            None => LogPath::Absolute(absolute),
        })
    }

    /// Decodes the path of a sidecar, which must be a bare file name: sidecars lie in `_delta_log/_sidecars` and nowhere else.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::ErrorKind::CorruptLog) for anything else.
    pub fn sidecar_name(raw: &str) -> Result<String> {
        let name = decode(raw).map_err(|error| error.at_path(redacted(raw)))?.into_owned();
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(Error::corrupt_log("path of a sidecar is not a bare file name").at_path(redacted(raw)));
        }
        Ok(name)
    }
}

/// Encodes a decoded path as `java.net.URI` and Hadoop's `Path.toUri` do, so that other clients read it back.
///
/// Letters, digits, `/`, `_-!.~'()*`, `;:@&=+$,` and other characters outside ASCII stay, except spaces and controls; everything else becomes the
/// percent-encoded bytes of its UTF-8. A colon in the first segment is encoded too: what stands before it could be taken for a scheme.
pub fn encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut first_segment = true;
    for c in path.chars() {
        first_segment &= c != '/';
        let keep = match c {
            ':' => !first_segment,
            c if c.is_ascii() => c.is_ascii_alphanumeric() || "/_-!.~'()*;@&=+$,".contains(c),
            c => !c.is_whitespace() && !c.is_control(),
        };
        if keep {
            out.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Decodes the percent-escapes of a URI's path, once.
///
/// # Errors
/// [`CorruptLog`](crate::ErrorKind::CorruptLog) for a `%` without two hexadecimal digits, and for bytes that are not UTF-8.
pub fn decode(encoded: &str) -> Result<Cow<'_, str>> {
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        let is_hex = |digit: Option<u8>| digit.is_some_and(|digit| digit.is_ascii_hexdigit());
        if byte == b'%' && !(is_hex(bytes.next()) && is_hex(bytes.next())) {
            return Err(Error::corrupt_log("path in the log has a '%' without two hexadecimal digits"));
        }
    }
    percent_encoding::percent_decode_str(encoded)
        .decode_utf8()
        .map_err(|error| Error::corrupt_log("path in the log is not UTF-8").with_source(error))
}

/// The segments of a decoded path, without empty and `.` ones.
fn segments(decoded: &str) -> Result<Vec<&str>> {
    if decoded.contains('\0') {
        return Err(Error::corrupt_log("path in the log contains NUL"));
    }
    let segments: Vec<_> = decoded.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect();
    if segments.contains(&"..") {
        return Err(Error::corrupt_log("path in the log contains a '..' segment"));
    }
    Ok(segments)
}

/// Splits `scheme:rest`; a colon after a character that no scheme has is part of the path.
fn split_scheme(raw: &str) -> (Option<&str>, &str) {
    match raw.split_once(':') {
        Some((scheme, rest))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')) =>
        {
            (Some(scheme), rest)
        }
        _ => (None, raw),
    }
}

/// One name per store: Hadoop has several drivers for the same buckets.
fn canonical_scheme(scheme: &str) -> String {
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "s3a" | "s3n" => "s3".into(),
        "abfs" => "abfss".into(),
        "wasb" => "wasbs".into(),
        "gcs" => "gs".into(),
        _ => scheme,
    }
}

/// `file://localhost/` is `file:///`.
fn canonical_authority(scheme: &str, authority: &str) -> String {
    match scheme.eq_ignore_ascii_case("file") && authority.eq_ignore_ascii_case("localhost") {
        true => String::new(),
        false => authority.to_owned(),
    }
}

fn root(url: &Url) -> Result<AbsolutePath> {
    if url.cannot_be_a_base() {
        return Err(Error::invalid_argument("location is not a hierarchical URL"));
    }
    AbsolutePath::from_url(url).map_err(|error| Error::invalid_argument("location has a path that no table can have").with_source(error))
}

/// `raw` without user information and query, for messages.
fn redacted(raw: &str) -> String {
    let (scheme, rest) = split_scheme(raw);
    let Some(rest) = rest.strip_prefix("//") else { return raw.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => host,
        _ => authority,
    };
    format!("{}//{host}{path}", scheme.map(|scheme| format!("{scheme}:")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    fn resolver(table: &str) -> PathResolver {
        PathResolver::new(&Url::parse(table).unwrap()).unwrap()
    }

    fn relative(path: &str) -> LogPath {
        LogPath::Relative(path.to_owned())
    }

    #[test]
    fn relative_paths_are_decoded_once() {
        let resolver = resolver("file:///data/t");
        for (raw, decoded) in [
            ("part-0.parquet", "part-0.parquet"),
            ("a%20b/part-0.parquet", "a b/part-0.parquet"),
            // A Hive-escaped directory name holds '%' itself, which the URI escapes again.
            ("ts=2020-01-01%2000%253A00/f", "ts=2020-01-01 00%3A00/f"),
            ("./a//b", "a/b"),
            ("x=1?y#z/f", "x=1?y#z/f"),
            ("t=12:30/f", "t=12:30/f"),
            ("%C3%A9/\u{e9}", "\u{e9}/\u{e9}"),
        ] {
            assert_eq!(resolver.resolve(raw).unwrap(), relative(decoded), "{raw}");
        }
    }

    #[test]
    fn absolute_paths_below_the_table_are_relative() {
        for raw in ["/data/my%20t/a/b", "file:/data/my%20t/a/b", "file:///data/my%20t/a/b", "FILE://localhost/data/my t/a/b"] {
            assert_eq!(resolver("file:///data/my%20t/").resolve(raw).unwrap(), relative("a/b"), "{raw}");
        }
        for raw in ["s3://bucket/t/a", "s3a://bucket/t/a", "s3n://bucket/t/a", "/t/a"] {
            assert_eq!(resolver("s3://bucket/t").resolve(raw).unwrap(), relative("a"), "{raw}");
        }
        assert_eq!(
            resolver("abfss://c@acc.dfs.core.windows.net/t").resolve("abfs://c@acc.dfs.core.windows.net/t/a").unwrap(),
            relative("a")
        );
    }

    #[test]
    fn hostile_paths_are_refused() {
        let resolver = resolver("s3://bucket/t");
        for raw in [
            "",
            "/",
            ".",
            "..",
            "../x",
            "a/../../x",
            "%2e%2E/x",
            "a%2F..%2Fx",
            "a\0",
            "a%00",
            "%",
            "%4",
            "%zz",
            "%ff",
            "s3:",
            "s3:x",
            "s3://bucket",
        ] {
            assert_eq!(resolver.resolve(raw).unwrap_err().kind(), ErrorKind::CorruptLog, "{raw:?}");
        }
        for raw in [
            "/etc/passwd",
            "/tt/a",
            "file:///t/a",
            "s3://other/t/a",
            "//other/t/a",
            "s3://user@bucket/t/a",
            "s3://bucket:9000/t/a",
            "https://bucket/t/a",
            "c:/t/a",
        ] {
            assert_eq!(resolver.resolve(raw).unwrap_err().kind(), ErrorKind::Unsupported, "{raw:?}");
        }
    }

    #[test]
    fn allowed_roots_open_what_lies_below_them_and_nothing_else() {
        let resolver = resolver("s3://bucket/clone").allow(&Url::parse("s3://other/base").unwrap()).unwrap();
        let LogPath::Absolute(path) = resolver.resolve("s3a://other/base/a%20b").unwrap() else { panic!() };
        assert_eq!((path.scheme(), path.authority(), path.path()), ("s3", "other", "/base/a b"));
        assert_eq!(path.to_uri(), "s3://other/base/a%20b");
        for raw in ["s3://other/base", "s3://other/base2/a", "s3://bucket/base/a", "/base/a"] {
            assert!(resolver.resolve(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn spellings_of_one_file_have_one_key() {
        let resolver = resolver("file:///somewhere/else");
        let key = resolver.parse("/some/unqualified/path").unwrap();
        assert_eq!(resolver.parse("file:/some/unqualified/path").unwrap(), key);
        assert_eq!(resolver.parse("file:///some/unqualified/path").unwrap(), key);
        assert!(resolver.resolve("/some/unqualified/path").is_err());
    }

    #[test]
    fn errors_show_no_credentials() {
        let resolver = resolver("s3://bucket/t");
        for raw in ["https://user:canary@host/t/a", "https://host/a?sig=canary", "https://user:canary@host/../a", "//u:canary@h/../x"] {
            let error = resolver.resolve(raw).unwrap_err().to_string();
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn sidecars_are_bare_names() {
        assert_eq!(PathResolver::sidecar_name("016ae953%20a.parquet").unwrap(), "016ae953 a.parquet");
        for raw in ["", ".", "..", "a/b", "a%2Fb", "/a", "file:///a", "a%00"] {
            assert_eq!(PathResolver::sidecar_name(raw).unwrap_err().kind(), ErrorKind::CorruptLog, "{raw}");
        }
    }

    #[test]
    fn paths_are_encoded_as_java_does() {
        // Expected values are those of new java.net.URI(null, null, path, null, null).toString().
        assert_eq!(encode("a b/%41?#[]{}|\\^`\"<>"), "a%20b/%2541%3F%23%5B%5D%7B%7D%7C%5C%5E%60%22%3C%3E");
        assert_eq!(encode("x/:@&=+$,;_-!.~'()*é日"), "x/:@&=+$,;_-!.~'()*é日");
        assert_eq!(encode("x/\u{a0}\u{7f}\u{2028}"), "x/%C2%A0%7F%E2%80%A8");
        assert_eq!(encode("a:b/c:d"), "a%3Ab/c:d");
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(path in any::<String>()) {
            let encoded = encode(&path);
            prop_assert_eq!(decode(&encoded).unwrap(), path);
        }

        #[test]
        fn what_is_written_resolves_to_itself(segments in prop::collection::vec("[^/\0]{1,8}", 1..4)) {
            prop_assume!(!segments.iter().any(|segment| segment == "." || segment == ".."));
            let path = segments.join("/");
            for table in ["file:///t", "s3://bucket/t%20u"] {
                prop_assert_eq!(resolver(table).resolve(&encode(&path)).unwrap(), relative(&path));
            }
        }

        #[test]
        fn nothing_resolves_outside_the_table(raw in "[a-z./%2Ee:]{0,24}|.*") {
            if let Ok(path) = resolver("file:///t").resolve(&raw) {
                let LogPath::Relative(path) = path else { panic!("{raw}") };
                prop_assert!(!path.is_empty() && path.split('/').all(|segment| !matches!(segment, "" | "." | "..")), "{}", path);
            }
        }
    }
}
