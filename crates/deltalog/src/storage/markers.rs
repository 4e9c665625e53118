//! Leaves out of listings the objects that other clients create only to mark directories.
//!
//! | empty object | created by |
//! | --- | --- |
//! | `dir/` | Hadoop's `s3a`, the consoles of S3 and Google, Google's connector for Hadoop |
//! | `dir_$folder$` | Hadoop's `s3n`, EMR |
//! | `dir`, with the metadata `hdi_isfolder` | Hadoop, in Azure accounts without a hierarchical namespace |
//!
//! In Azure accounts with a hierarchical namespace, directories are listed as well; the client leaves them out by their
//! resource type. The client also removes a slash from the end of a name. So objects of the first and third kind look
//! like an empty file with the name of a directory.

use std::collections::HashSet;

use super::FileMeta;

/// The suffix of a marker that is stored next to its directory.
const SUFFIX: &str = "_$folder$";

/// Removes the markers from a listing. An empty object that has the same name as a directory without files is kept,
/// because it cannot be distinguished from an empty file.
pub(super) fn remove(files: &mut Vec<FileMeta>) {
    // The files of tables are not empty, so there is usually nothing to do.
    if files.iter().all(|file| file.size > 0) {
        return;
    }
    let empty: HashSet<&str> =
        files.iter().filter(|file| file.size == 0).map(|file| file.name.as_str()).collect();
    let mut directories = HashSet::new();
    for file in files.iter() {
        let parents = file.name.match_indices('/').filter_map(|(at, _)| file.name.get(..at));
        directories.extend(parents.filter(|parent| empty.contains(parent)).map(str::to_owned));
    }
    files.retain(|file| {
        file.size > 0 || !(file.name.ends_with(SUFFIX) || directories.contains(file.name.as_str()))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(files: &[(&str, u64)]) -> Vec<String> {
        let mut files: Vec<FileMeta> = files
            .iter()
            .map(|(name, size)| FileMeta { name: (*name).to_owned(), size: *size, modified_ms: 0, tag: None })
            .collect();
        remove(&mut files);
        files.into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn directories_are_left_out_and_empty_files_are_kept() {
        let files =
            [("a", 0), ("a-b", 1), ("a/b", 0), ("a/b/c", 1), ("d_$folder$", 0), ("e", 0), ("f_$folder$", 1)];
        assert_eq!(left(&files), ["a-b", "a/b/c", "e", "f_$folder$"]);
    }

    #[test]
    fn a_file_with_content_is_kept() {
        assert_eq!(left(&[("a", 1), ("a/b", 1), ("b", 0)]), ["a", "a/b", "b"]);
    }
}
