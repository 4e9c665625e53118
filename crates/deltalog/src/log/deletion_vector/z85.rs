//! Z85, the Base85 encoding of ZeroMQ. (<https://rfc.zeromq.org/spec/32/>; PROTOCOL, "Deletion Vector Descriptor
//! Schema".)
//!
//! Five characters encode four bytes, most significant first.
//!
//! The specification leaves it to the application how to encode lengths that are not a multiple of four, and writers of
//! deletion vectors differ:
//!
//! ```text
//! bytes 03 00   "0@@r3"   zeros are appended; the size in the descriptor tells how many
//!               "##093"   Rust crate `z85`: padding is prepended, written as one `#` per missing byte
//! ```
//!
//! The two forms cannot be confused: as a number, a block of five characters that begins with `#` exceeds 2^32.

use crate::error::{Error, Result};

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
/// The padding character for a missing byte at the start of the last block.
const MISSING: u8 = b'#';

/// The value of each character, or [`NONE`] for characters outside the alphabet.
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

/// Decodes `text`: four bytes per five characters, or fewer for a last block that is padded the way the crate `z85`
/// pads it.
///
/// # Errors
/// `CorruptLog` for a character outside the alphabet, a length that is not a multiple of five, and a block
/// whose value does not fit in its bytes.
pub(super) fn decode(text: &str) -> Result<Vec<u8>> {
    let (blocks, []) = text.as_bytes().as_chunks::<5>() else {
        let length = text.len();
        return Err(Error::corrupt_log(format!(
            "the Z85 text has {length} characters, which is not a multiple of five"
        )));
    };
    let mut bytes = Vec::with_capacity(blocks.len() * 4);
    for (index, block) in blocks.iter().enumerate() {
        let missing = match index + 1 == blocks.len() {
            true => block.iter().take(3).take_while(|character| **character == MISSING).count(),
            false => 0,
        };
        let value = block.iter().skip(missing).try_fold(0u64, |value, character| {
            match VALUES[usize::from(*character)] {
                NONE => Err(Error::corrupt_log("the Z85 text has a character outside its alphabet")),
                digit => Ok(value * 85 + u64::from(digit)),
            }
        })?;
        // Big endian: the bytes of the block are the last of the eight.
        match value.to_be_bytes().split_at_checked(4 + missing) {
            Some((above, block)) if above.iter().all(|byte| *byte == 0) => bytes.extend(block),
            _ => {
                return Err(Error::corrupt_log(
                    "the Z85 text has a block whose value does not fit in its bytes",
                ));
            }
        }
    }
    Ok(bytes)
}

/// Encodes `bytes`, padding the last block as the crate `z85` does.
pub(super) fn encode(bytes: &[u8]) -> String {
    let (blocks, last) = bytes.as_chunks::<4>();
    let mut text: String = blocks.iter().flat_map(|bytes| block(u32::from_be_bytes(*bytes))).collect();
    if !last.is_empty() {
        let missing = 4 - last.len();
        let value = last.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        text.extend(std::iter::repeat_n(char::from(MISSING), missing));
        text.extend(block(value).into_iter().skip(missing));
    }
    text
}

/// Returns the five characters that encode a block of four bytes.
fn block(value: u32) -> [char; 5] {
    let digit = |power: u32| value / 85u32.pow(power) % 85;
    [4, 3, 2, 1, 0].map(|power| ALPHABET.get(digit(power) as usize).map_or('0', |byte| char::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The test case of the specification, <https://rfc.zeromq.org/spec/32/#test-case>.
    #[test]
    fn the_test_case_of_the_specification_is_decoded() {
        assert_eq!(decode("HelloWorld").unwrap(), [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]);
        assert_eq!(decode("").unwrap(), [0; 0]);
    }

    #[test]
    fn the_last_block_may_mark_missing_bytes() {
        assert_eq!(decode("##093").unwrap(), [3, 0]);
        assert_eq!(decode("Hello##093").unwrap(), [0x86, 0x4F, 0xD2, 0x6F, 3, 0]);
        assert_eq!(decode("###30").unwrap(), [255]);
        assert_eq!(decode("#0000").unwrap(), [0, 0, 0]);
    }

    #[test]
    fn text_that_is_not_z85_is_refused() {
        for text in ["0", "HelloWorl", "Hell World", "\"0000", "0000~", "é000", "#####", "%nSc1"] {
            assert!(decode(text).is_err(), "{text}");
        }
        assert_eq!(decode("%nSc0").unwrap(), [0xFF; 4]);
        // Padding before the last block, and values that do not fit in the bytes of their block.
        for text in ["##093Hello", "###31", "####0", "##963", "#####Hello"] {
            assert!(decode(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn encode_undoes_decode(
            text in "[0-9a-zA-Z.:+=^!/*?&<>()\\[\\]{}@%$#-]{0,40}|([0-9a-z]{5}){0,3}#{1,3}0[0-9a-z]{1,3}"
        ) {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}
