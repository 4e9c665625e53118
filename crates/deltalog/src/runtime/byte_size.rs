//! Parses sizes in bytes as users write them.

/// Returns the number of bytes for a string such as `10GiB`, `500 MB` or `4096`. `GiB` and `GB` both mean a power of
/// two, as in table properties.
pub(crate) fn bytes_of(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match lower.get(digits.len()..)?.trim() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
