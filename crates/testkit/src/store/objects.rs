//! The objects of a store, with all contents that they have ever had.

use std::collections::BTreeMap;

use bytes::Bytes;

/// An object.
#[derive(Debug, Clone)]
pub struct Object {
    /// The contents.
    pub bytes: Bytes,
    /// The time at which it was written, in milliseconds since the epoch.
    pub modified_ms: i64,
    /// The number of the change that wrote it, which is its entity tag.
    pub number: u64,
    /// The number and the time of the change that created the object.
    pub appeared: (u64, i64),
}

/// An object in a listing.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The path.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The time at which the object was written, in milliseconds since the epoch.
    pub modified_ms: i64,
    /// The number of the change that wrote the object, which is its entity tag.
    pub number: u64,
    /// The number and the time of the change that created the object.
    pub appeared: (u64, i64),
}

/// A change of one object.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Put(Bytes),
    Create(Bytes),
    /// Replaces the object if it is still the one that the change with this number wrote.
    Update(Bytes, u64),
    Delete,
}

/// The reason why a change is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Exists,
    IsAnother,
}

/// The objects of a store.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    objects: BTreeMap<String, Object>,
    changes: u64,
    contents: BTreeMap<String, Vec<Bytes>>,
    /// Requests whose caller no longer waits for them, each with the time at which it takes effect.
    late: Vec<(i64, String, Effect)>,
}

impl Objects {
    /// Returns an object.
    pub fn get(&self, path: &str) -> Option<&Object> {
        self.objects.get(path)
    }

    /// Adds an object, for example one that was found in another store.
    pub fn put(&mut self, path: &str, bytes: Bytes, now_ms: i64) {
        // A change without a condition is never refused.
        let _ = self.change(path, Effect::Put(bytes), now_ms);
    }

    /// Changes the time at which an object was written, if the object exists.
    pub fn set_modified_ms(&mut self, path: &str, modified_ms: i64) {
        if let Some(object) = self.objects.get_mut(path) {
            object.modified_ms = modified_ms;
        }
    }

    /// Returns the number of changes so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the objects in the directory `prefix` whose paths are greater than `after`, ordered by path.
    pub fn list(&self, prefix: &str, after: &str) -> Vec<Entry> {
        let start = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        self.objects
            .range(start.clone()..)
            .take_while(|(path, _)| path.starts_with(&start))
            .filter(|(path, _)| path.as_str() > after)
            .map(|(path, object)| Entry {
                path: path.clone(),
                size: object.bytes.len() as u64,
                modified_ms: object.modified_ms,
                number: object.number,
                appeared: object.appeared,
            })
            .collect()
    }

    /// Returns all contents that the objects whose paths begin with `prefix` have ever had, the oldest first.
    pub fn contents(&self, prefix: &str) -> impl Iterator<Item = (&str, &[Bytes])> {
        let below =
            self.contents.range(prefix.to_owned()..).take_while(move |(path, _)| path.starts_with(prefix));
        below.map(|(path, contents)| (path.as_str(), contents.as_slice()))
    }

    /// Lets the delayed requests that are due at `now_ms` take effect. Returns the path of each request that has
    /// changed an object, and whether it was a deletion.
    pub fn land(&mut self, now_ms: i64) -> Vec<(String, bool)> {
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.late).into_iter().partition(|(at, ..)| *at <= now_ms);
        self.late = later;
        due.sort_by_key(|(at, ..)| *at);
        let mut landed = Vec::new();
        for (at, path, effect) in due {
            let is_deletion = matches!(effect, Effect::Delete);
            if self.change(&path, effect, at).is_ok() {
                landed.push((path, is_deletion));
            }
        }
        landed
    }

    pub(super) fn defer(&mut self, path: &str, effect: Effect, at_ms: i64) {
        self.late.push((at_ms, path.to_owned(), effect));
    }

    /// Makes a change and returns its number.
    pub(super) fn change(&mut self, path: &str, effect: Effect, now_ms: i64) -> Result<u64, Refusal> {
        let found = self.objects.get(path);
        let bytes = match effect {
            Effect::Create(_) if found.is_some() => return Err(Refusal::Exists),
            Effect::Update(_, number) if found.is_none_or(|found| found.number != number) => {
                return Err(Refusal::IsAnother);
            }
            Effect::Put(bytes) | Effect::Create(bytes) | Effect::Update(bytes, _) => Some(bytes),
            Effect::Delete => None,
        };
        self.changes += 1;
        let number = self.changes;
        match bytes {
            None => drop(self.objects.remove(path)),
            Some(bytes) => {
                let appeared = found.map_or((number, now_ms), |found| found.appeared);
                self.contents.entry(path.to_owned()).or_default().push(bytes.clone());
                self.objects.insert(path.to_owned(), Object { bytes, modified_ms: now_ms, number, appeared });
            }
        }
        Ok(number)
    }
}
