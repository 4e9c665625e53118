//! Z85, the Base85 of ZeroMQ. (<https://rfc.zeromq.org/spec/32/>; PROTOCOL, "Deletion Vector Descriptor
//! Schema".)
//!
//! Five characters are four bytes, the most significant first.

use crate::error::{Error, Result};

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// The value of each character, or [`NONE`].
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        values[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    values
};
const NONE: u8 = u8::MAX;

/// The bytes that `text` stands for: four for each five characters.
///
/// # Errors
/// `CorruptLog` for a character outside of the alphabet, a length that is no multiple of five, and five
/// characters whose value is above 2^32.
pub(super) fn decode(text: &str) -> Result<Vec<u8>> {
    let (groups, []) = text.as_bytes().as_chunks::<5>() else {
        return Err(Error::corrupt_log(format!(
            "Z85 text of {} characters, which is no multiple of five",
            text.len()
        )));
    };
    let mut bytes = Vec::with_capacity(groups.len() * 4);
    for group in groups {
        let mut value = 0u64;
        for character in group {
            match VALUES[usize::from(*character)] {
                NONE => {
                    return Err(Error::corrupt_log("Z85 text with a character that is not in its alphabet"));
                }
                digit => value = value * 85 + u64::from(digit),
            }
        }
        let value = u32::try_from(value)
            .map_err(|_| Error::corrupt_log("Z85 text with five characters that are no four bytes"))?;
        bytes.extend(value.to_be_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(bytes: &[u8]) -> String {
        let character = |group: &[u8; 4], power: u32| {
            let value = u64::from(u32::from_be_bytes(*group));
            char::from(ALPHABET[(value / 85u64.pow(power) % 85) as usize])
        };
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .flat_map(|group| (0..5).rev().map(move |power| character(group, power)))
            .collect()
    }

    /// The test case of the specification, <https://rfc.zeromq.org/spec/32/#test-case>.
    #[test]
    fn the_specifications_test_case() {
        assert_eq!(decode("HelloWorld").unwrap(), [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]);
        assert_eq!(decode("").unwrap(), [0; 0]);
    }

    #[test]
    fn what_is_no_z85_is_refused() {
        for text in ["0", "HelloWorl", "Hell World", "\"0000", "0000~", "é000", "#####", "%nSc1"] {
            assert!(decode(text).is_err(), "{text}");
        }
        assert_eq!(decode("%nSc0").unwrap(), [0xFF; 4]);
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(groups in prop::collection::vec(any::<[u8; 4]>(), 0..20)) {
            let bytes = groups.concat();
            prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn encode_undoes_decode(text in "[0-9a-zA-Z.:+=^!/*?&<>()\\[\\]{}@%$#-]{0,40}") {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}
