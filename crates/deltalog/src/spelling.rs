//! What a misspelled name was meant to be.

/// The number of letters in which a misspelled name may differ from the name that was meant.
const MAX_TYPOS: usize = 3;

/// Returns the known name that differs least from `name`, ignoring case, if it differs little.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distances = known.into_iter().map(|known| (strsim::levenshtein(&known.to_lowercase(), &name), known));
    distances.filter(|(typos, _)| *typos <= MAX_TYPOS).min().map(|(_, known)| known)
}
