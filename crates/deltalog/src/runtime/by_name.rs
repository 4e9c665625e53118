//! Finds many names in a long list in linear time, because tables may have tens of thousands of columns.
//!
//! - Callers usually ask for the names in the order of the list, so a search first tries the name after the one that
//!   was found last.
//! - The first time that this name does not match, the search compares the names one by one, because a caller often
//!   wants only one name. The second time, it builds an index.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use arrow::datatypes::Fields;

/// An index of the names of `count` items.
pub(crate) struct ByName<'a, F> {
    name_of: F,
    count: usize,
    next: Cell<usize>,
    /// Whether a search has already failed to find its name at the next position.
    has_failed: Cell<bool>,
    index: OnceCell<HashMap<&'a str, usize>>,
}

impl<'a, F: Fn(usize) -> Option<&'a str>> ByName<'a, F> {
    /// Creates an index of `count` items. `name_of` returns the name of an item.
    pub(crate) fn new(count: usize, name_of: F) -> Self {
        Self { name_of, count, next: Cell::new(0), has_failed: Cell::new(false), index: OnceCell::new() }
    }

    /// Returns the position of an item with this name: the item after the one found last, if it has this name,
    /// otherwise the first item with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let next = self.next.get();
        let found = match (self.name_of)(next) {
            Some(expected) if expected == name => next,
            _ if !self.has_failed.replace(true) => {
                (0..self.count).find(|at| (self.name_of)(*at) == Some(name))?
            }
            _ => *self.index().get(name)?,
        };
        self.next.set(found + 1);
        Some(found)
    }

    fn index(&self) -> &HashMap<&'a str, usize> {
        self.index.get_or_init(|| {
            let named = (0..self.count).rev().filter_map(|at| Some(((self.name_of)(at)?, at)));
            named.collect()
        })
    }
}

/// Returns an index of the names of `fields`.
pub(crate) fn names_of<'a>(fields: &'a Fields) -> ByName<'a, impl Fn(usize) -> Option<&'a str>> {
    ByName::new(fields.len(), |at| Some(fields.get(at)?.name().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_order() {
        let names = ["a", "b", "c", "b", "d"];
        let asked = std::cell::RefCell::new(0);
        let by_name = ByName::new(names.len(), |at| {
            *asked.borrow_mut() += 1;
            names.get(at).copied()
        });
        assert_eq!(["a", "b", "c"].map(|name| by_name.find(name)), [Some(0), Some(1), Some(2)]);
        assert_eq!(*asked.borrow(), 3, "names in order take one comparison each");
        assert_eq!(
            ["d", "a", "x", "b", "c"].map(|name| by_name.find(name)),
            [Some(4), Some(0), None, Some(1), Some(2)]
        );
        let looked_through = names.len();
        assert_eq!(*asked.borrow(), 3 + 5 + looked_through + names.len(), "the index is built only once");
    }
}
