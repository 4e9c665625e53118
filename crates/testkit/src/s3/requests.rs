//! Records requests, for tests that count them.

use hyper::Method;
use hyper::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// GetObject.
    Get,
    /// HeadObject.
    Head,
    /// HeadBucket.
    HeadBucket,
    /// PutObject without a condition.
    Put,
    /// PutObject that must not overwrite (`If-None-Match: *`).
    Create,
    /// PutObject that must overwrite one version (`If-Match`).
    Update,
    /// DeleteObject.
    Delete,
    /// DeleteObjects.
    DeleteMany,
    /// ListObjectsV2.
    List,
    /// CreateMultipartUpload.
    CreateUpload,
    /// UploadPart.
    UploadPart,
    /// CompleteMultipartUpload, with or without a condition.
    CompleteUpload,
    /// AbortMultipartUpload.
    AbortUpload,
    /// An operation that this server does not support.
    Other,
}

/// A request, and properties of its response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The number of the request, which its id also contains.
    pub number: u64,
    /// The kind.
    pub kind: Kind,
    /// The bucket.
    pub bucket: String,
    /// The key. For a listing, this is the prefix; for DeleteObjects, all keys as they occur in the XML, one per
    /// line.
    pub key: String,
    /// The query, as it was sent.
    pub query: String,
    /// The `Range` header.
    pub range: Option<String>,
    /// The size of the request's body in bytes.
    pub bytes_in: usize,
    /// The number of bytes of the response's body that were sent.
    pub bytes_out: usize,
    /// The status of the response; `None` if there was no response.
    pub status: Option<u16>,
    /// The indexes of the rules that applied to the request, in order.
    pub rules: Vec<usize>,
}

impl Request {
    pub(super) fn new(number: u64, parts: &Parts, body: &[u8]) -> Self {
        let path = decoded(parts.uri.path().trim_start_matches('/'));
        let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
        let query = parts.uri.query().unwrap_or_default();
        let kind = kind(parts, key, query);
        let key = match kind {
            Kind::List => parameter(query, "prefix").unwrap_or_default(),
            Kind::DeleteMany => deleted_keys(body),
            _ => key.to_owned(),
        };
        Self {
            number,
            kind,
            bucket: bucket.to_owned(),
            key,
            query: query.to_owned(),
            range: header(parts, "range").map(str::to_owned),
            bytes_in: body.len(),
            bytes_out: 0,
            status: None,
            rules: Vec::new(),
        }
    }
}

/// Returns how many of `requests` are of this kind.
pub fn count(requests: &[Request], kind: Kind) -> usize {
    requests.iter().filter(|request| request.kind == kind).count()
}

fn kind(parts: &Parts, key: &str, query: &str) -> Kind {
    let has = |name| parameter(query, name).is_some();
    match (&parts.method, key.is_empty()) {
        (&Method::GET, true) if has("list-type") => Kind::List,
        (&Method::HEAD, true) => Kind::HeadBucket,
        (&Method::POST, true) if has("delete") => Kind::DeleteMany,
        (&Method::GET, false) if !has("uploadId") => Kind::Get,
        (&Method::HEAD, false) => Kind::Head,
        (&Method::PUT, false) if has("uploadId") => Kind::UploadPart,
        (&Method::PUT, false) if header(parts, "x-amz-copy-source").is_some() => Kind::Other,
        (&Method::PUT, false) if header(parts, "if-none-match").is_some() => Kind::Create,
        (&Method::PUT, false) if header(parts, "if-match").is_some() => Kind::Update,
        (&Method::PUT, false) => Kind::Put,
        (&Method::POST, false) if has("uploads") => Kind::CreateUpload,
        (&Method::POST, false) if has("uploadId") => Kind::CompleteUpload,
        (&Method::DELETE, false) if has("uploadId") => Kind::AbortUpload,
        (&Method::DELETE, false) => Kind::Delete,
        _ => Kind::Other,
    }
}

pub(super) fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the value of a parameter of a query; empty if it has no value.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        (found == name).then(|| decoded(&value.replace('+', " ")))
    })
}

pub(super) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn deleted_keys(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
    keys.map(|(key, _)| key).collect::<Vec<_>>().join("\n")
}
