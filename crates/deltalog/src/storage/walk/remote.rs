//! Lists several prefixes of a remote store at the same time.
//!
//! - The pages of a single listing cannot be requested in parallel, because each page begins where the previous one has
//!   ended. If prefixes are known, further listings can begin at these prefixes.
//! - A listing with a delimiter returns the prefixes of a directory and the files between them. If there are only a few
//!   prefixes, the next level is listed as well: a table with three years of twelve months each is listed by month.
//! - Successive prefixes form a range, which is read by one listing without a delimiter: ten thousand partitions with
//!   one file each take fewer than a hundred requests, not ten thousand. A range never contains a prefix that is not
//!   entered.
//! - A range leaves out the files between its prefixes, because the listing with a delimiter has already returned them.

use object_store::list::PaginatedListOptions;
use object_store::path::Path;

use super::jobs::{Found, Lister};
use super::{Enters, entry, relative};
use crate::error::{Error, Result};
use crate::storage::FileMeta;
use crate::storage::answers::Failure;
use crate::storage::remote::{Page, Remote};

/// If there would be fewer ranges than this, the next level is listed as well.
const ENOUGH: usize = 16;
/// The number of ranges into which the prefixes of a page are divided, if there are several pages.
const OF_PAGE: usize = 4;
/// The maximum number of levels that are listed with a delimiter.
const LEVELS: usize = 4;

/// Lists the keys below a prefix.
pub(super) struct Prefixes<'a> {
    store: &'a Remote,
    directory: &'a Path,
    /// The length of the directory's path, including the slash.
    skip: usize,
    enters: Enters<'a>,
    failed: &'a (dyn Fn(Failure) -> Error + Sync),
}

/// A listing that is still to be done.
pub(super) enum Job {
    /// The first page of all keys. Usually it contains all of them.
    First,
    /// The direct content of the directory `prefix`, which ends with a slash.
    Level {
        prefix: String,
        /// The number of levels above the directory.
        depth: usize,
        /// The number of sibling directories that are listed at the same time.
        beside: usize,
    },
    /// All keys below successive prefixes of a directory. The prefixes end with a slash and are sorted.
    Range { prefix: String, directories: Vec<String> },
    /// All files below a directory, in a store with directories.
    Directory(Path),
}

impl<'a> Prefixes<'a> {
    pub(super) fn new(
        store: &'a Remote,
        directory: &'a Path,
        enters: Enters<'a>,
        failed: &'a (dyn Fn(Failure) -> Error + Sync),
    ) -> Self {
        let skip = directory_prefix(directory).len();
        Self { store, directory, skip, enters, failed }
    }

    /// Returns a page of a listing. It is empty if the directory does not exist.
    fn page(&self, prefix: &str, options: PaginatedListOptions) -> Result<Page> {
        self.found(self.store.page(prefix.to_owned(), options))
    }

    fn found<T: Default>(&self, answer: std::result::Result<T, Failure>) -> Result<T> {
        match answer {
            Err(failure) if failure.is_missing() => Ok(T::default()),
            answer => answer.map_err(self.failed),
        }
    }

    /// Returns the entries of a page, except for objects in directories that are not entered.
    fn entered(&self, page: &Page) -> Vec<FileMeta> {
        let mut seen = Vec::new();
        let files = page.objects.iter().filter_map(|meta| entry(meta, self.skip));
        files.filter(|file| self.is_entered(&file.name, &mut seen)).collect()
    }

    /// Returns whether all directories above a file are entered. `seen` contains the directories above the previous
    /// file, outermost first, and whether each of them is entered.
    fn is_entered(&self, name: &str, seen: &mut Vec<(String, bool)>) -> bool {
        for (level, (end, _)) in name.match_indices('/').enumerate() {
            let directory = name.get(..end).unwrap_or(name);
            if seen.get(level).is_none_or(|(before, _)| before != directory) {
                seen.truncate(level);
                seen.push((directory.to_owned(), (self.enters)(directory)));
            }
            if seen.get(level).is_some_and(|(_, is_entered)| !is_entered) {
                return false;
            }
        }
        true
    }

    fn level(&self, prefix: &str, depth: usize, beside: usize, found: Found<'_>) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        let mut options =
            PaginatedListOptions { delimiter: Some("/".into()), ..PaginatedListOptions::default() };
        loop {
            let page = self.page(prefix, options.clone())?;
            let files: Vec<FileMeta> =
                page.objects.iter().filter_map(|meta| entry(meta, self.skip)).collect();
            if !files.is_empty() && found(files).is_err() {
                return Ok(Vec::new());
            }
            let is_only = page.token.is_none() && options.page_token.is_none();
            let beside = if is_only { beside } else { beside.max(ENOUGH / OF_PAGE) };
            jobs.extend(self.below(prefix, &page.prefixes, depth, beside));
            match page.token {
                Some(token) => options.page_token = Some(token),
                None => return Ok(jobs),
            }
        }
    }

    /// Returns the jobs that list the files below the prefixes of a page.
    fn below(&self, prefix: &str, prefixes: &[Path], depth: usize, beside: usize) -> Vec<Job> {
        let mut listed: Vec<(String, bool)> = prefixes
            .iter()
            .filter_map(|path| {
                let is_entered = (self.enters)(&relative(path, self.skip)?);
                Some((directory_prefix(path), is_entered))
            })
            .collect();
        listed.sort_unstable();
        let entered = listed.iter().filter(|(_, is_entered)| *is_entered).count();
        if entered * beside < ENOUGH && depth + 1 < LEVELS {
            let level = |prefix| Job::Level { prefix, depth: depth + 1, beside: entered * beside };
            return listed
                .into_iter()
                .filter(|(_, entered)| *entered)
                .map(|(prefix, _)| level(prefix))
                .collect();
        }
        // A range must not contain a directory that is not entered, because that directory may be larger than all
        // others.
        let ranges = ENOUGH.div_ceil(beside.max(1));
        let most = entered.div_ceil(ranges).max(1);
        let neighbours = listed.split(|(_, is_entered)| !is_entered);
        let ranges = neighbours.flat_map(|run| run.chunks(most)).map(|run| Job::Range {
            prefix: prefix.to_owned(),
            directories: run.iter().map(|(directory, _)| directory.clone()).collect(),
        });
        ranges.collect()
    }

    fn range(&self, prefix: &str, directories: &[String], found: Found<'_>) -> Result<()> {
        let (Some(first), Some(last)) = (directories.first(), directories.last()) else { return Ok(()) };
        // A single directory is listed by its own prefix. Several directories are listed by the prefix of their parent,
        // so the keys between them have to be left out (`is_below`).
        let (prefix, offset) = match directories {
            [only] => (only.as_str(), None),
            _ => (prefix, Some(first.clone())),
        };
        let mut options = PaginatedListOptions { offset, ..PaginatedListOptions::default() };
        let is_below = |key: &str| {
            let next = directories.partition_point(|directory| directory.as_str() <= key);
            next.checked_sub(1)
                .and_then(|index| directories.get(index))
                .is_some_and(|directory| key.starts_with(directory.as_str()))
        };
        loop {
            let mut page = self.page(prefix, options.clone())?;
            let keys = || page.objects.iter().map(|meta| meta.location.as_ref());
            // Some stores do not list in order. For these, a range must be listed to the end.
            let is_after = |key: &str| key > last.as_str() && !key.starts_with(last.as_str());
            let is_past = keys().is_sorted() && keys().next_back().is_some_and(is_after);
            page.objects.retain(|meta| is_below(meta.location.as_ref()));
            let files = self.entered(&page);
            if !files.is_empty() && found(files).is_err() {
                return Ok(());
            }
            match page.token {
                Some(token) if !is_past => options.page_token = Some(token),
                _ => return Ok(()),
            }
        }
    }

    /// Lists a store that cannot list page by page.
    fn whole(&self, found: Found<'_>) -> Result<()> {
        let objects = self.found(self.store.all(self.directory.clone()))?;
        let page = Page { objects, ..Page::default() };
        let files = self.entered(&page);
        if !files.is_empty() {
            // The listing is already complete, so it does not matter if the consumer has stopped.
            let _ = found(files);
        }
        Ok(())
    }

    fn directory(&self, path: &Path, found: Found<'_>) -> Result<Vec<Job>> {
        let page = self.found(self.store.directory(path.clone()))?;
        let files: Vec<FileMeta> = page.objects.iter().filter_map(|meta| entry(meta, self.skip)).collect();
        if !files.is_empty() && found(files).is_err() {
            return Ok(Vec::new());
        }
        let is_entered = |path: &Path| relative(path, self.skip).is_some_and(|name| (self.enters)(&name));
        Ok(page.prefixes.into_iter().filter(is_entered).map(Job::Directory).collect())
    }
}

impl Lister for Prefixes<'_> {
    type Job = Job;

    fn first(&self) -> Job {
        Job::First
    }

    fn run(&self, job: Job, found: Found<'_>) -> Result<Vec<Job>> {
        match job {
            Job::First if self.store.has_directories().map_err(self.failed)? => {
                Ok(vec![Job::Directory(self.directory.clone())])
            }
            Job::First if !self.store.has_pages().map_err(self.failed)? => {
                self.whole(found).map(|()| Vec::new())
            }
            Job::First => {
                let prefix = directory_prefix(self.directory);
                let page = self.page(&prefix, PaginatedListOptions::default())?;
                if page.token.is_some() {
                    return Ok(vec![Job::Level { prefix, depth: 0, beside: 1 }]);
                }
                let files = self.entered(&page);
                if !files.is_empty() {
                    // The listing is already complete, so it does not matter if the consumer has stopped.
                    let _ = found(files);
                }
                Ok(Vec::new())
            }
            Job::Level { prefix, depth, beside } => self.level(&prefix, depth, beside, found),
            Job::Range { prefix, directories } => {
                self.range(&prefix, &directories, found).map(|()| Vec::new())
            }
            Job::Directory(path) => self.directory(&path, found),
        }
    }
}

/// Returns the prefix that all keys below a directory have.
fn directory_prefix(directory: &Path) -> String {
    match directory.as_ref() {
        "" => String::new(),
        directory => format!("{directory}/"),
    }
}
