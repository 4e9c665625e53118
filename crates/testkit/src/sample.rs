//! The sizes of random samples.

/// The environment variable that holds the factor of [`cases`].
const FACTOR: &str = "DELTALOG_CASES_FACTOR";

/// Returns the number of cases of a property test that usually tries `usual` cases: this number times
/// `DELTALOG_CASES_FACTOR`, which is 1 by default. Proptest's own variable `PROPTEST_CASES` has no effect on tests that
/// state a number.
///
/// # Panics
/// If the variable is not a positive number.
pub fn cases(usual: u32) -> u32 {
    scaled(usual, std::env::var(FACTOR).ok().as_deref())
}

fn scaled(usual: u32, factor: Option<&str>) -> u32 {
    match factor.map(str::parse) {
        None => usual,
        Some(Ok(factor @ 1..)) => usual.saturating_mul(factor),
        Some(_) => panic!("{FACTOR} is not a positive number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_multiplies_the_usual_number() {
        assert_eq!(scaled(150, None), 150);
        assert_eq!(scaled(150, Some("20")), 3_000);
    }

    #[test]
    #[should_panic(expected = "DELTALOG_CASES_FACTOR is not a positive number")]
    fn a_sample_of_no_cases_is_refused() {
        scaled(150, Some("0"));
    }
}
