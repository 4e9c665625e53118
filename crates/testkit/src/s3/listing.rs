//! Creates a page of a listing: keys and common prefixes, ordered by their bytes.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::buckets::Object;

/// The parameters of a listing request.
#[derive(Debug, Default)]
pub(super) struct Listing<'a> {
    pub(super) prefix: &'a str,
    /// The delimiter; empty if keys are not grouped into common prefixes.
    pub(super) delimiter: &'a str,
    /// Only entries after this text are listed. It is the client's start or the last entry of the previous page.
    pub(super) after: &'a str,
    /// The maximum number of entries, including common prefixes.
    pub(super) limit: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Key(String),
    CommonPrefix(String),
}

impl Entry {
    pub(super) fn text(&self) -> &str {
        let (Self::Key(text) | Self::CommonPrefix(text)) = self;
        text
    }
}

impl Listing<'_> {
    /// Returns the entries of the page, and whether more pages follow.
    pub(super) fn page(&self, objects: &BTreeMap<String, Object>) -> (Vec<Entry>, bool) {
        let mut entries = Vec::new();
        let is_past = !self.after.is_empty() && self.after >= self.prefix;
        let mut from = Some(match is_past {
            true => Bound::Excluded(self.after.to_owned()),
            false => Bound::Included(self.prefix.to_owned()),
        });
        while let Some(begin) = from.take() {
            for (key, _) in objects.range::<str, _>((begin.as_ref().map(String::as_str), Bound::Unbounded)) {
                let Some(rest) = key.strip_prefix(self.prefix) else { return (entries, false) };
                let found = if self.delimiter.is_empty() { None } else { rest.find(self.delimiter) };
                let common = found.map(|at| &key[..self.prefix.len() + at + self.delimiter.len()]);
                let entry = match common {
                    None => Entry::Key(key.clone()),
                    Some(common) => Entry::CommonPrefix(common.to_owned()),
                };
                // A common prefix is an entry of its own. It may come before `after` although this key does not.
                if entry.text() > self.after {
                    if entries.len() == self.limit {
                        return (entries, true);
                    }
                    entries.push(entry);
                }
                if let Some(common) = common {
                    // Continues the search after all keys that begin with the prefix.
                    from = after_prefix(common).map(Bound::Included);
                    break;
                }
            }
        }
        (entries, false)
    }
}

/// Returns the first text that comes after all texts with this prefix; `None` if there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        // UTF-8 keeps the order of code points, and surrogates are not characters.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn objects(keys: &[&str]) -> BTreeMap<String, Object> {
        keys.iter().map(|key| ((*key).to_owned(), Object::new(Bytes::new()))).collect()
    }

    /// Returns the entries on all pages of a listing.
    fn pages(objects: &BTreeMap<String, Object>, prefix: &str, delimiter: &str, limit: usize) -> Vec<String> {
        let (mut texts, mut last) = (Vec::new(), String::new());
        loop {
            let listing = Listing { prefix, delimiter, after: &last, limit };
            let (entries, has_more) = listing.page(objects);
            texts.extend(entries.iter().map(|entry| entry.text().to_owned()));
            last = texts.last().cloned().unwrap_or_default();
            if !has_more {
                return texts;
            }
            assert_eq!(entries.len(), limit);
        }
    }

    #[test]
    fn pages_of_any_size_show_the_same() {
        let objects =
            objects(&["a", "a/1", "a/2", "a0", "b/x/1", "b/x/2", "b/y", "c", "é/1", "\u{10ffff}/1"]);
        for limit in 1..12 {
            assert_eq!(pages(&objects, "", "/", limit), ["a", "a/", "a0", "b/", "c", "é/", "\u{10ffff}/"]);
            assert_eq!(pages(&objects, "b/", "/", limit), ["b/x/", "b/y"]);
            assert_eq!(pages(&objects, "", "", limit), objects.keys().cloned().collect::<Vec<_>>());
            assert_eq!(pages(&objects, "a/", "", limit), ["a/1", "a/2"]);
            assert!(pages(&objects, "zz", "/", limit).is_empty());
        }
    }

    #[test]
    fn a_listing_starts_after_a_key() {
        let objects = objects(&["a/1", "a/2", "b", "c"]);
        let listing = |after, prefix| Listing { prefix, delimiter: "", after, limit: 9 };
        let texts = |listing: Listing<'_>| -> Vec<String> {
            listing.page(&objects).0.iter().map(|entry| entry.text().to_owned()).collect()
        };
        assert_eq!(texts(listing("a/1", "")), ["a/2", "b", "c"]);
        assert_eq!(texts(listing("a/15", "a/")), ["a/2"]);
        assert_eq!(texts(listing("a", "a/")), ["a/1", "a/2"]);
        assert!(texts(listing("b", "a/")).is_empty());
        let common = Listing { delimiter: "/", ..listing("a/1", "") };
        assert_eq!(texts(common), ["b", "c"]);
    }
}
