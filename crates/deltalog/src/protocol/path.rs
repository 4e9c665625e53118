//! Resolves all paths in a log: the paths in `add`, `remove`, `cdc`, deletion vectors, sidecars and hints. (PROTOCOL,
//! "Add File and Remove File".)
//!
//! ```text
//! month=1/part-0%20a.parquet          relative          → month=1/part-0 a.parquet
//! s3a://bucket/table/part-0.parquet   below the table   → part-0.parquet
//! s3://bucket/other/part-0.parquet    refused unless below an allowed root
//! ```
//!
//! - A path is a URI. It is percent-decoded exactly once and before any check, so that `%2E%2E` counts as `..` and
//!   `%2F` as `/`.
//! - Refused are: `..` segments, NUL, empty paths, malformed escapes, bytes that are not UTF-8, other schemes and
//!   authorities, and absolute paths that are neither below the table nor below a root that the caller has allowed.
//! - `.` segments and duplicate slashes are dropped, as in Hadoop's `Path`. `?` and `#` are ordinary
//!   characters.
//! - `decode(encode(s)) = s` for every string.
//! - Errors never show a URI's user information or query string.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use url::Url;

use crate::error::{Error, Result};

/// A decoded path from the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogPath {
    /// A path relative to the table's root: segments joined by `/`. No segment is empty, `.` or `..`.
    Relative(String),
    /// A path outside the table.
    Absolute(AbsolutePath),
}

/// Formats the path for messages: relative to the table's root, or as a URI.
impl fmt::Display for LogPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative(path) => f.write_str(path),
            Self::Absolute(path) => f.write_str(&path.to_uri()),
        }
    }
}

/// A decoded path together with the store it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsolutePath {
    scheme: String,
    authority: String,
    path: String,
}

impl AbsolutePath {
    /// Returns the scheme in its canonical spelling: `s3` for `s3a` and `s3n`, `abfss` for `abfs`, and so on.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns the bucket, or the container and account. It is empty for local files.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the decoded path, which begins with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path as an encoded URI.
    pub fn to_uri(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, encode(&self.path))
    }

    fn from_url(url: &Url) -> Result<Self> {
        let decoded = decode(url.path())?;
        check_keys(url.scheme(), decoded.trim_end_matches('/'))?;
        let path = segments(&decoded)?.into_iter().flat_map(|segment| ["/", segment]).collect();
        Ok(Self {
            scheme: canonical_scheme(url.scheme()),
            authority: canonical_authority(url.scheme(), url.authority()),
            path,
        })
    }

    fn same_store(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.authority.eq_ignore_ascii_case(&other.authority)
    }

    /// Returns the part of `path` after this root, if `path` is below this root.
    fn strip<'p>(&self, path: &'p Self) -> Option<&'p str> {
        if !self.same_store(path) {
            return None;
        }
        path.path.strip_prefix(&self.path)?.strip_prefix('/').filter(|rest| !rest.is_empty())
    }
}

/// A resolver for the paths of one table's log.
#[derive(Debug, Clone)]
pub struct PathResolver {
    table: AbsolutePath,
    allowed: Vec<AbsolutePath>,
}

impl PathResolver {
    /// Creates a resolver for the table at `table`.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::error::ErrorKind::InvalidArgument) if the location is not a hierarchical URL or
    /// has a `..` segment.
    pub fn new(table: &Url) -> Result<Self> {
        Ok(Self { table: root(table)?, allowed: Vec::new() })
    }

    /// Also allows absolute paths below `root_url`. Shallow clones need this.
    ///
    /// # Errors
    /// Returns the same errors as [`PathResolver::new`].
    pub fn allow(mut self, root_url: &Url) -> Result<Self> {
        self.allowed.push(root(root_url)?);
        Ok(self)
    }

    /// Returns whether both resolvers are for the same table location.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.table.same_store(&other.table) && self.table.path == other.table.path
    }

    /// Returns whether the table of `other` is below the root of this table.
    pub(crate) fn contains_table(&self, other: &Self) -> bool {
        self.table.strip(&other.table).is_some()
    }

    /// Returns whether both tables are in the same store.
    pub(crate) fn is_in_store_of(&self, other: &Self) -> bool {
        self.table.same_store(&other.table)
    }

    /// Returns the absolute path of a file that the table's log names.
    pub(crate) fn absolute(&self, path: &LogPath) -> AbsolutePath {
        match path {
            LogPath::Absolute(path) => path.clone(),
            LogPath::Relative(path) => {
                AbsolutePath { path: format!("{}/{path}", self.table.path), ..self.table.clone() }
            }
        }
    }

    /// Returns the allowed roots outside the table, as URIs.
    pub fn allowed_roots(&self) -> impl Iterator<Item = String> {
        self.allowed.iter().map(AbsolutePath::to_uri)
    }

    /// Decodes a path from the log. Refuses a path that is neither below the table nor below an allowed root.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) for an invalid path,
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported) for a path that is not below any root.
    pub fn resolve(&self, raw: &str) -> Result<LogPath> {
        let path = self.parse(raw)?;
        match &path {
            LogPath::Absolute(absolute)
                if !self.allowed.iter().any(|root| root.strip(absolute).is_some()) =>
            {
                Err(Error::unsupported(format!("path '{}' in the log is outside the table", redacted(raw)))
                    .with_hint(
                        "if the table is a shallow clone that you trust, allow its root (`allowed_roots`; in \
                         Spark the option `allowedRoots`)",
                    ))
            }
            _ => Ok(path),
        }
    }

    /// Resolves a path that was already decoded.
    ///
    /// # Errors
    /// Returns the same errors as [`PathResolver::resolve`].
    pub fn resolve_decoded(&self, decoded: &str) -> Result<LogPath> {
        self.resolve(&encode_uri(decoded))
    }

    /// Does the same as [`PathResolver::parse`] for an absolute path that was already decoded. Returns the part after
    /// the table's root, or `None` if the path is outside the table or not absolute.
    ///
    /// # Errors
    /// Returns the same errors as [`PathResolver::parse`].
    pub(crate) fn below_table(&self, decoded: &str) -> Result<Option<String>> {
        if !(decoded.starts_with('/') || split_scheme(decoded).0.is_some()) {
            return Ok(None);
        }
        Ok(match self.parse(&encode_uri(decoded))? {
            LogPath::Relative(path) => Some(path),
            LogPath::Absolute(_) => None,
        })
    }

    /// Decodes and normalizes a path from the log, without checking whether it may be read. A replay of the log
    /// identifies files by the result.
    ///
    /// Different spellings of the same file (`/t/a`, `file:/t/a`, `file:///t/a`, and `a` in the table `file:///t`) give
    /// equal results.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) for an invalid path.
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
        check_keys(scheme.unwrap_or(&self.table.scheme), &decoded).map_err(refuse)?;
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
                authority: authority.map_or_else(
                    || self.table.authority.clone(),
                    |text| canonical_authority(&self.table.scheme, text),
                ),
                path,
            },
        };
        Ok(match self.table.strip(&absolute) {
            Some(relative) => LogPath::Relative(relative.to_owned()),
            None => LogPath::Absolute(absolute),
        })
    }

    /// Decodes the path of a sidecar. It must be a bare file name, because sidecars exist only in
    /// `_delta_log/_sidecars`.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) for any other path.
    pub fn sidecar_name(raw: &str) -> Result<String> {
        let name = decode(raw).map_err(|error| error.at_path(redacted(raw)))?.into_owned();
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(
                Error::corrupt_log("path of a sidecar is not a bare file name").at_path(redacted(raw))
            );
        }
        Ok(name)
    }
}

/// Encodes a decoded path as a URI. (PROTOCOL, "Add File and Remove File": paths are URIs of RFC 2396.)
///
/// Letters, digits, `/`, `_-!.~'()*` and `;:@&=+$,` are kept, as in `java.net.URI` and in Hadoop's `Path.toUri`. All
/// other characters are percent-encoded as UTF-8. Characters outside ASCII are encoded too, although Java keeps them.
/// The reason is that `deltalake` encodes them in `remove` actions and in checkpoints, but compares paths as strings:
/// if `add` actions did not encode them, a removed file would reappear. A colon in the first segment is encoded too,
/// because the part before it could be taken for a scheme.
pub fn encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut first_segment = true;
    for c in path.chars() {
        first_segment &= c != '/';
        let keep = match c {
            ':' => !first_segment,
            c => c.is_ascii_alphanumeric() || "/_-!.~'()*;@&=+$,".contains(c),
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

/// Decodes the percent escapes in the path of a URI, exactly once.
///
/// # Errors
/// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) for a `%` without two hexadecimal digits and for bytes that
/// are not UTF-8.
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

/// Returns the segments of a decoded path. Empty segments and `.` are left out.
fn segments(decoded: &str) -> Result<Vec<&str>> {
    if decoded.contains('\0') {
        return Err(Error::corrupt_log("path in the log contains NUL"));
    }
    let segments: Vec<_> =
        decoded.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect();
    if segments.contains(&"..") {
        return Err(Error::corrupt_log("path in the log contains a '..' segment"));
    }
    Ok(segments)
}

/// Refuses empty segments in stores where they are part of an object's key: `s3://bucket//t` is not `s3://bucket/t`.
fn check_keys(scheme: &str, decoded: &str) -> Result<()> {
    // In file systems, including Hadoop's, directories cannot have empty names.
    match decoded.contains("//") && matches!(canonical_scheme(scheme).as_str(), "s3" | "gs" | "abfss") {
        true => Err(Error::corrupt_log("the path has an empty segment, two slashes in succession")),
        false => Ok(()),
    }
}

/// Splits `scheme:rest`. If a character before the colon cannot be part of a scheme, the colon belongs to the path.
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

/// Encodes a decoded path, together with its scheme if it has one.
fn encode_uri(decoded: &str) -> String {
    let (scheme, rest) = split_scheme(decoded);
    let encoded = encode(rest);
    scheme.map_or(encoded.clone(), |scheme| format!("{scheme}:{encoded}"))
}

/// Returns the canonical scheme for a store. Hadoop has several drivers for the same buckets, each with its own scheme.
pub(crate) fn canonical_scheme(scheme: &str) -> String {
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "s3a" | "s3n" => "s3".into(),
        "abfs" | "wasb" | "wasbs" => "abfss".into(),
        "gcs" => "gs".into(),
        _ => scheme,
    }
}

/// Returns the canonical authority for a store. Maps `file://localhost/` to `file:///`, and the Blob Storage of an
/// Azure account to its Data Lake Storage, which has the same files.
pub(crate) fn canonical_authority(scheme: &str, authority: &str) -> String {
    match canonical_scheme(scheme).as_str() {
        "file" if authority.eq_ignore_ascii_case("localhost") => String::new(),
        "abfss" => authority.replacen(".blob.", ".dfs.", 1),
        _ => authority.to_owned(),
    }
}

fn root(url: &Url) -> Result<AbsolutePath> {
    if url.cannot_be_a_base() {
        return Err(Error::invalid_argument("location is not a hierarchical URL"));
    }
    AbsolutePath::from_url(url)
        .map_err(|error| Error::invalid_argument("location has an invalid path").with_source(error))
}

/// Returns whether URIs of `scheme` have the form `abfss://container@account…`.
pub(crate) fn has_container(scheme: &str) -> bool {
    canonical_scheme(scheme) == "abfss"
}

/// Removes user information, query and fragment from a URI, for messages.
///
/// The part before the `@` in `abfss://container@account` is kept, because it is the container and not user
/// information.
pub(crate) fn redacted(uri: &str) -> String {
    let (scheme, rest) = split_scheme(uri);
    let Some(rest) = rest.strip_prefix("//") else { return uri.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let has_container = scheme.is_some_and(has_container);
    let host = match authority.rsplit_once('@') {
        Some((container, _)) if has_container && !container.contains(':') => authority,
        Some((_, host)) => host,
        None => authority,
    };
    format!("{}//{host}{path}", scheme.map(|scheme| format!("{scheme}:")).unwrap_or_default())
}

#[cfg(test)]
mod tests;
