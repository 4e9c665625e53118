//! Digests of bytes.

use crate::error::{Error, Result};
use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::Int32Type;
use sha2::Digest as _;
use std::fmt::Write;
use std::sync::Arc;

/// A digest of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Digest {
    /// `md5(a)`, as hexadecimal digits.
    Md5,
    /// `sha1(a)`
    Sha1,
    /// `sha2(a, bits)` with 224, 256 (or 0), 384 or 512 bits; NULL for other numbers.
    Sha2,
    /// `crc32(a)`, a whole number.
    Crc32,
}

impl Digest {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha2 => "sha2",
            Self::Crc32 => "crc32",
        }
    }
}

/// Computes a digest of the bytes in the first argument.
pub(super) fn digest(of: Digest, arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let undefined = || Error::invalid_argument(format!("{of:?} is not defined for these values"));
    let bytes = arguments.first().and_then(|bytes| bytes.as_binary_opt::<i32>()).ok_or_else(undefined)?;
    let texts = |of: &dyn Fn(&[u8]) -> String| -> ArrayRef {
        Arc::new(bytes.iter().map(|bytes| bytes.map(of)).collect::<StringArray>())
    };
    Ok(match of {
        Digest::Md5 => texts(&|bytes| format!("{:x}", md5::compute(bytes))),
        Digest::Sha1 => texts(&|bytes| hexadecimal(&sha1::Sha1::digest(bytes))),
        Digest::Crc32 => Arc::new(
            bytes.iter().map(|bytes| bytes.map(|bytes| i64::from(crc32(bytes)))).collect::<Int64Array>(),
        ),
        Digest::Sha2 => {
            let bits = arguments.get(1).and_then(|bits| bits.as_primitive_opt::<Int32Type>());
            let digests =
                bytes.iter().zip(bits.ok_or_else(undefined)?).map(|(bytes, bits)| sha2(bytes?, bits?));
            Arc::new(digests.collect::<StringArray>())
        }
    })
}

fn sha2(bytes: &[u8], bits: i32) -> Option<String> {
    Some(match bits {
        224 => hexadecimal(&sha2::Sha224::digest(bytes)),
        0 | 256 => hexadecimal(&sha2::Sha256::digest(bytes)),
        384 => hexadecimal(&sha2::Sha384::digest(bytes)),
        512 => hexadecimal(&sha2::Sha512::digest(bytes)),
        _ => return None,
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the CRC-32 checksum that zip files use; the lowest bit of each byte comes first.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let (mut value, mut bit) = (at as u32, 0);
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let place = (crc ^ u32::from(*byte)) & 0xff;
        TABLE.get(place as usize).copied().unwrap_or_default() ^ (crc >> 8)
    })
}
