//! Numbers of bytes as users write them.

/// Returns the number of bytes that a text such as `10GiB`, `500 MB` or `4096` stands for. Both units are powers of
/// two, as in the properties of tables.
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
