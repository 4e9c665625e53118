//! The canonical form of a JSON object, and its checksum. (PROTOCOL, "JSON checksum".)
//!
//! ```text
//! {"k1": {"b": 2, "a": ["x y", null]}, "checksum": "…"}   ──>   "k1"+"a"+0="x%20y","k1"+"a"+1=null,"k1"+"b"=2
//! ```
//!
//! - Numbers are kept exactly as they are written in the JSON text, never converted to binary numbers.
//! - An object with a duplicate key has no canonical form.
//! - The top-level key `checksum` is ignored.
//! - Excessive nesting is an error, not a stack overflow.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Every character except letters, digits and `-._~`. (PROTOCOL, "How to URL encode keys and string values".)
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The maximum nesting depth; it is the same as in serde_json.
const MAX_DEPTH: u8 = 127;

/// The key of the checksum. The checksum covers all keys except this one.
const CHECKSUM: &str = "checksum";

/// Returns the checksum of the JSON object `json`.
///
/// # Errors
/// If `json` is not a JSON object or has a duplicate key.
pub(super) fn json_checksum(json: &str) -> serde_json::Result<String> {
    canonical(json).map(|text| format!("{:x}", md5::compute(text.as_bytes())))
}

/// Returns the canonical form of the JSON object `json`.
fn canonical(json: &str) -> serde_json::Result<String> {
    let mut leaves = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.deserialize_map(Members { path: "", depth: 0, leaves: &mut leaves })?;
    deserializer.end()?;
    leaves.sort();
    let text: Vec<String> = leaves.into_iter().map(|(path, value)| format!("{path}={value}")).collect();
    Ok(text.join(","))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", utf8_percent_encode(text, RESERVED))
}

fn below(path: &str, segment: &str) -> String {
    if path.is_empty() { segment.to_owned() } else { format!("{path}+{segment}") }
}

type Leaves = Vec<(String, String)>;

/// A value nested in the top-level object.
struct Value<'a> {
    path: String,
    depth: u8,
    leaves: &'a mut Leaves,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
        let text = raw.get();
        if self.depth > MAX_DEPTH {
            return Err(serde::de::Error::custom("values are nested too deeply"));
        }
        // Each value is deserialized from its own JSON text, because only the text shows how a number is written.
        let mut inner = serde_json::Deserializer::from_str(text);
        let done = match text.as_bytes().first() {
            Some(b'{') => {
                inner.deserialize_map(Members { path: &self.path, depth: self.depth, leaves: self.leaves })
            }
            Some(b'[') => {
                inner.deserialize_seq(Elements { path: &self.path, depth: self.depth, leaves: self.leaves })
            }
            Some(b'"') => {
                serde_json::from_str::<String>(text).map(|text| self.leaves.push((self.path, quoted(&text))))
            }
            _ => {
                self.leaves.push((self.path, text.to_owned()));
                Ok(())
            }
        };
        done.map_err(serde::de::Error::custom)
    }
}

struct Members<'a> {
    path: &'a str,
    depth: u8,
    leaves: &'a mut Leaves,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(serde::de::Error::custom(format!("the key '{key}' occurs twice")));
            }
            if self.path.is_empty() && key == CHECKSUM {
                map.next_value::<serde::de::IgnoredAny>()?;
            } else {
                let path = below(self.path, &quoted(&key));
                map.next_value_seed(Value { path, depth: self.depth + 1, leaves: self.leaves })?;
            }
        }
        Ok(())
    }
}

struct Elements<'a> {
    path: &'a str,
    depth: u8,
    leaves: &'a mut Leaves,
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0usize;
        loop {
            let path = below(self.path, &index.to_string());
            if seq.next_element_seed(Value { path, depth: self.depth + 1, leaves: self.leaves })?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the protocol's section "JSON checksum".
    #[test]
    fn the_example_of_the_protocol_has_its_canonical_form() {
        let json = r#"{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2,
            "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"#;
        let leaves = [
            r#""k0"="%27v%200%27""#,
            r#""k1"+"k2"=2"#,
            r#""k1"+"k3"+0="v3""#,
            r#""k1"+"k3"+1+0=1"#,
            r#""k1"+"k3"+1+1=2"#,
            r#""k1"+"k3"+2+"k4"="v4""#,
            r#""k1"+"k3"+2+"k5"+0="v5""#,
            r#""k1"+"k3"+2+"k5"+1="v6""#,
            r#""k1"+"k3"+2+"k5"+2="v7""#,
        ];
        assert_eq!(canonical(json).unwrap(), leaves.join(","));
        assert_eq!(json_checksum(json).unwrap(), "6a92d155a59bf2eecbd4b4ec7fd1f875");
    }

    #[test]
    fn other_examples_of_the_section_have_their_canonical_forms() {
        let json = r#"{"a": 10, "b": {"y": null, "x": "https://delta.io"} }"#;
        assert_eq!(canonical(json).unwrap(), r#""a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null"#);
        assert_eq!(
            canonical(r#"{"a":[null, "hi ho", 2.71]}"#).unwrap(),
            r#""a"+0=null,"a"+1="hi%20ho","a"+2=2.71"#
        );
        assert_eq!(
            canonical(r#"{"k1": "v1", "checksum": "<anything>", "k3": 23}"#).unwrap(),
            r#""k1"="v1","k3"=23"#
        );
        assert_eq!(
            canonical(r#"{"n":1.50e3,"é>":{"checksum":true}}"#).unwrap(),
            r#""%C3%A9%3E"+"checksum"=true,"n"=1.50e3"#
        );
    }

    #[test]
    fn text_without_a_canonical_form_is_refused() {
        for json in
            [r#"{"a":1,"a":2}"#, r#"{"a":{"b":1,"b":1}}"#, "[1]", "1", "", r#"{"a":1"#, r#"{"a":1} x"#]
        {
            assert!(canonical(json).is_err(), "{json}");
        }
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(canonical(&deep(100)).is_ok());
        assert!(canonical(&deep(10_000)).is_err());
    }
}
