//! Computes the content of manifests: the paths of the table's files, by partition directory.

use std::collections::{BTreeMap, BTreeSet};

use super::{MANIFESTS, ensure_none_has_vector};
use crate::error::{Error, Result};
use crate::log::replay::{FileColumn, FileColumns, adds_of};
use crate::protocol::{LogPath, PartitionValues, path};
use crate::snapshot::Snapshot;
use crate::write::partition_directory;

/// The content of each manifest, keyed by its directory relative to the root of the manifests.
pub(super) type Manifests = BTreeMap<String, String>;

/// The partitions to read, given by their directories; `None` for all partitions.
pub(super) type Partitions = Option<BTreeSet<String>>;

/// Returns the manifests of those `partitions` that have files in `snapshot`. For a table without partition columns,
/// there is always one manifest.
///
/// # Errors
/// `Unsupported` for files with deletion vectors, files outside the places that the caller allows, and files with
/// control characters in their paths; `CorruptLog`; errors from the store.
pub(super) fn manifests(snapshot: &Snapshot, partitions: &Partitions) -> Result<Manifests> {
    let root = full_root(snapshot)?;
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if snapshot.metadata().partition_columns.is_empty() {
        lines.insert(String::new(), Vec::new());
    }
    let columns = FileColumns::of_removes().with(FileColumn::ModificationTime);
    for batch in snapshot.replay_files(columns)? {
        let batch = batch?;
        ensure_none_has_vector(&batch)?;
        for add in adds_of(&batch)? {
            let directory = directory_of(snapshot, &add.partition_values);
            if partitions.as_ref().is_none_or(|partitions| partitions.contains(&directory)) {
                let file = match snapshot.resolver().resolve(&add.path)? {
                    LogPath::Relative(path) => format!("{root}/{path}"),
                    LogPath::Absolute(path) => full(path.scheme(), path.authority(), path.path()),
                };
                lines.entry(directory).or_default().push(one_line(file)?);
            }
        }
    }
    let text = |mut lines: Vec<String>| {
        lines.sort_unstable();
        lines.into_iter().map(|line| line + "\n").collect()
    };
    Ok(lines.into_iter().map(|(directory, lines)| (directory, text(lines))).collect())
}

/// Refuses a path that would not be a single line, or that a terminal would not display correctly.
fn one_line(file: String) -> Result<String> {
    match file.contains(char::is_control) {
        true => {
            let text = format!("a manifest cannot list a file with control characters in its path: {file:?}");
            Err(Error::unsupported(text))
        }
        false => Ok(file),
    }
}

/// Returns the directory of a partition. It ends with a slash, unless it is the root.
pub(super) fn directory_of(snapshot: &Snapshot, values: &PartitionValues) -> String {
    let columns = snapshot.metadata().partition_columns.iter();
    partition_directory(
        columns.map(|name| (name.as_str(), values.get(name).and_then(|value| value.as_deref()))),
    )
}

/// Returns the path of the manifest in a directory.
pub(super) fn path_in(directory: &str) -> String {
    format!("{MANIFESTS}/{directory}manifest")
}

/// Returns the table's root as Hadoop shows it and the JVM implementation writes it: not percent-encoded, and with a
/// single slash after the scheme of local files.
fn full_root(snapshot: &Snapshot) -> Result<String> {
    let root = snapshot.storage().root();
    let decoded = path::decode(root.path())?;
    Ok(full(root.scheme(), root.authority(), decoded.trim_end_matches('/')))
}

fn full(scheme: &str, authority: &str, path: &str) -> String {
    match authority {
        "" => format!("{scheme}:{path}"),
        authority => format!("{scheme}://{authority}{path}"),
    }
}
