//! A naive decoder of deletion vectors. (Protocol: "Deletion Vectors", "Deletion Vector Format".)
//!
//! ```text
//! blob   u32 magic │ u64 buckets │ u32 key, 32-bit Roaring bitmap │ …       little endian
//! file   u8 version │ … │ u32 size, blob, u32 CRC │ …                       big endian, at the offset
//! ```

use std::collections::BTreeSet;

use roaring::RoaringTreemap;
use serde_json::{Map, Value};

use crate::store::Objects;

const MAGIC: u32 = 1_681_511_377;

/// The characters of the Z85 encoding, ordered by their values.
const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// A deletion vector, as its descriptor describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vector {
    storage: String,
    text: String,
    offset: Option<u64>,
    size: u64,
    cardinality: u64,
}

impl Vector {
    /// Parses the field `deletionVector` of a file action.
    pub(super) fn of(fields: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| {
            let text = fields.get(name).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("a deletion vector has no '{name}'"))
        };
        let number = |name: &str| fields.get(name).and_then(Value::as_u64);
        let required = |name: &str| number(name).ok_or_else(|| format!("a deletion vector has no '{name}'"));
        Ok(Self {
            storage: text("storageType")?,
            text: text("pathOrInlineDv")?,
            offset: number("offset"),
            size: required("sizeInBytes")?,
            cardinality: required("cardinality")?,
        })
    }

    /// Returns the id that distinguishes the vector from other vectors of its data file. (Protocol: "Derived
    /// Fields".)
    pub(super) fn id(&self) -> String {
        let offset = self.offset.map(|offset| format!("@{offset}")).unwrap_or_default();
        format!("{}{}{offset}", self.storage, self.text)
    }

    /// Returns the rows that the vector deletes. Its file may be any file that `objects` has ever contained below
    /// `root`.
    pub(super) fn rows(&self, objects: &Objects, root: &str) -> Result<BTreeSet<u64>, String> {
        let size = usize::try_from(self.size).map_err(|error| error.to_string())?;
        let blob = match self.storage.as_str() {
            "i" => z85(&self.text)?.into_iter().take(size).collect(),
            "u" => self.in_file(objects, root, size)?,
            other => return Err(format!("a deletion vector has the storage type '{other}'")),
        };
        let rows = decode(&blob)?;
        if rows.len() as u64 != self.cardinality {
            return Err(format!("a deletion vector has {} rows, but says {}", rows.len(), self.cardinality));
        }
        Ok(rows)
    }

    /// Returns the path of the file that contains the vector, relative to the table; `None` if the log contains the
    /// vector itself.
    pub(super) fn path(&self) -> Result<Option<String>, String> {
        if self.storage == "i" {
            return Ok(None);
        }
        let split = self.text.len().checked_sub(20).ok_or("the name of a deletion vector is too short")?;
        let (prefix, name) = self.text.split_at(split);
        let hex: String = z85(name)?.iter().map(|byte| format!("{byte:02x}")).collect();
        let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        let directory = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Some(format!("{directory}deletion_vector_{groups}.bin")))
    }

    fn in_file(&self, objects: &Objects, root: &str, size: usize) -> Result<Vec<u8>, String> {
        let path = self.path()?.ok_or("the deletion vector is in the log")?;
        let path = format!("{root}/{path}");
        let found = objects.contents(&path).find(|(found, _)| *found == path);
        let (_, contents) = found.ok_or_else(|| format!("'{path}' does not exist"))?;
        let bytes = contents.last().ok_or_else(|| format!("'{path}' has no content"))?;
        let offset = usize::try_from(self.offset.unwrap_or_default()).map_err(|error| error.to_string())?;
        let (head, blob) = (bytes.get(offset..offset + 4), bytes.get(offset + 4..offset + 4 + size));
        let (Some(head), Some(blob)) = (head, blob) else {
            return Err(format!("'{path}' ends before the vector at {offset}"));
        };
        if head != u32::try_from(size).unwrap_or_default().to_be_bytes() {
            return Err(format!("'{path}' has another size at {offset} than {size}"));
        }
        Ok(blob.to_vec())
    }
}

fn decode(blob: &[u8]) -> Result<BTreeSet<u64>, String> {
    match blob.split_first_chunk::<4>() {
        Some((magic, rest)) if u32::from_le_bytes(*magic) == MAGIC => {
            let rows = RoaringTreemap::deserialize_from(rest).map_err(|error| error.to_string())?;
            Ok(rows.into_iter().collect())
        }
        _ => Err("a deletion vector does not begin with its magic number".to_owned()),
    }
}

/// Decodes each group of five characters to four bytes.
fn z85(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(5) {
        let mut value: u32 = 0;
        for character in group {
            let digit = ALPHABET.iter().position(|known| known == character);
            let digit = digit.ok_or_else(|| format!("'{text}' is not Z85"))?;
            let more = value.checked_mul(85).and_then(|value| value.checked_add(u32::try_from(digit).ok()?));
            value = more.ok_or_else(|| format!("'{text}' is not Z85"))?;
        }
        if group.len() != 5 {
            return Err(format!("'{text}' is not Z85"));
        }
        bytes.extend(value.to_be_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from ZeroMQ's RFC 32, and from "JSON Example 1" of "Deletion Vector Descriptor
    /// Schema".
    #[test]
    fn z85_is_that_of_the_standard() {
        assert_eq!(z85("HelloWorld").unwrap(), [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b]);
        let uuid = z85("^-aqEH.-t@S}K{vb[*k^").unwrap();
        assert_eq!(uuid, 0xd2c639aa_8816_431a_aaf6_d3fe2512ff61_u128.to_be_bytes());
        assert!(z85("four").is_err() && z85("~~~~~").is_err());
    }

    #[test]
    fn rows_are_those_of_the_bitmap() {
        let rows = RoaringTreemap::from_iter([0, 3, 7, 1 << 33]);
        let mut blob = MAGIC.to_le_bytes().to_vec();
        rows.serialize_into(&mut blob).unwrap();
        assert_eq!(decode(&blob).unwrap(), rows.iter().collect());
        assert!(decode(&blob[1..]).is_err());
    }
}
