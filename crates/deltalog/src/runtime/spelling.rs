//! Suggests known names for a misspelled one.

/// The maximum number of letters by which a misspelled name may differ from the known name.
const MAX_TYPOS: usize = 3;

/// Returns the known name that differs least from `name`, ignoring case, unless it differs too much.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distances = known.into_iter().map(|known| (strsim::levenshtein(&known.to_lowercase(), &name), known));
    distances.filter(|(typos, _)| *typos <= MAX_TYPOS).min().map(|(_, known)| known)
}

/// The maximum number of names that are listed in a message.
const MAX_LISTED: usize = 20;

/// Returns the known names as text for a message. Names that differ least from `name`, ignoring case, come first.
pub(crate) fn nearest_first<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let name = name.to_lowercase();
    let mut known: Vec<&str> = known.into_iter().collect();
    // Similar names come first; all other names keep their order.
    known.sort_by_cached_key(|known| strsim::levenshtein(&known.to_lowercase(), &name).min(MAX_TYPOS + 1));
    let more = known.len().saturating_sub(MAX_LISTED);
    known.truncate(MAX_LISTED);
    let listed = known.join(", ");
    if more == 0 { listed } else { format!("{listed} and {more} others") }
}
