//! Translates listings: parameters of the XML API to parameters of the JSON API, and JSON responses to XML.

use std::collections::HashMap;
use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::front::{escaped, text};

/// Returns the URL of the JSON API for a listing request of the XML API.
pub(super) fn url(server: &str, bucket: &str, query: &HashMap<String, String>) -> String {
    let mut url = format!("{server}/storage/v1/b/{bucket}/o?projection=noAcl");
    for (name, value) in query {
        let (name, value) = match name.as_str() {
            "prefix" | "delimiter" => (name.as_str(), value.clone()),
            "max-keys" => ("maxResults", value.clone()),
            "continuation-token" => ("pageToken", value.clone()),
            // In the JSON API, a listing begins with the given name itself; in the XML API, it begins after the name.
            "start-after" => ("startOffset", format!("{value}\0")),
            _ => continue,
        };
        let value = utf8_percent_encode(&value, NON_ALPHANUMERIC);
        write!(url, "&{name}={value}").expect("memory");
    }
    url
}

/// Converts a response of the JSON API to a response of the XML API.
pub(super) fn xml(found: &Value) -> String {
    let mut xml = "<ListBucketResult>".to_owned();
    for item in found["items"].as_array().into_iter().flatten() {
        let [key, size, time, tag] =
            ["name", "size", "updated", "etag"].map(|name| escaped(text(item, name)));
        write!(
            xml,
            "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{time}</LastModified>\
             <ETag>\"{tag}\"</ETag></Contents>"
        )
        .expect("memory");
    }
    for prefix in found["prefixes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let prefix = escaped(prefix);
        write!(xml, "<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>").expect("memory");
    }
    if let Some(token) = found["nextPageToken"].as_str() {
        let token = escaped(token);
        write!(xml, "<NextContinuationToken>{token}</NextContinuationToken>").expect("memory");
    }
    xml + "</ListBucketResult>"
}
