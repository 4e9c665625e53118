//! Checks the fragments that the workers of a write return, before the commit.
//!
//! - A fragment is compared with the write, with the table's partition columns, and with a listing of the write's
//!   directory. The partition values of a file must match the name of its directory.
//! - The files are not opened. The numbers in their statistics, their modification times and the counted values of
//!   identity columns are therefore trusted.
//! - A check changes nothing, so the caller can leave out an invalid fragment or have its files written again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::fragment::{Fragment, FragmentFile};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::constraints::Lane;
use crate::protocol::{Add, LogPath, PartitionColumnBuilder, PathResolver, path};
use crate::storage::Storage;
use crate::values::stats::num_records;
use crate::write::{TableWriteSpec, ensure_required};

/// Fragments that have passed the checks and can be committed.
#[derive(Debug, Clone)]
pub struct CheckedFragments {
    pub(crate) files: Vec<Add>,
    /// The values that were assigned to identity columns: for each fragment and column, the first and the last value.
    pub(super) counted: Vec<(String, i64, i64)>,
    /// The decoded paths of files in the write's directory that are not in any fragment.
    pub(crate) unnamed: Vec<String>,
}

/// Checks the fragments of the write whose files are in `directory`.
pub(crate) fn check(
    storage: &Storage,
    spec: &TableWriteSpec,
    directory: &str,
    fragments: &[Fragment],
) -> Result<CheckedFragments> {
    let resolver = PathResolver::new(storage.root())?;
    let mut named: BTreeMap<String, &FragmentFile> = BTreeMap::new();
    let mut files = Vec::new();
    for fragment in fragments {
        if fragment.write_id() != directory {
            return Err(Error::invalid_argument(format!(
                "a fragment belongs to the write {}, not to this write, {directory}",
                fragment.write_id()
            ))
            .with_hint("commit the fragments of one write with that write"));
        }
        for file in fragment.files() {
            let located = |error: Error| error.at_path(&file.path);
            let decoded = located_below(&resolver, directory, file)?;
            check_statistics(file).map_err(located)?;
            let add = added(file, spec).map_err(located)?;
            check_partition_values(&add, spec).map_err(located)?;
            check_place(&decoded, directory, &add, spec).map_err(located)?;
            if named.insert(decoded, file).is_some() {
                return Err(located(
                    Error::invalid_argument("a file is in the fragments twice")
                        .with_hint("pass the fragment of each worker once"),
                ));
            }
            files.push(add);
        }
    }
    let counted = check_counted(fragments, spec)?;
    let unnamed = compare_with_store(storage, directory, &named)?;
    Ok(CheckedFragments { files, counted, unnamed })
}

/// Refuses fragments that assign the same values to identity columns. (PROTOCOL, "Identity Columns".) Returns the
/// assigned values.
fn check_counted(fragments: &[Fragment], spec: &TableWriteSpec) -> Result<Vec<(String, i64, i64)>> {
    let identities = &spec.rules().identities;
    let mut lanes: BTreeSet<Lane> = BTreeSet::new();
    let mut values = Vec::new();
    for fragment in fragments {
        let counted = fragment.counted();
        identities.check(counted, fragment.num_rows())?;
        let Some(counted) = counted else { continue };
        let lane = counted.lane;
        if let Some(other) = lanes.iter().find(|other| other.of() != lane.of()) {
            return Err(Error::invalid_argument(format!(
                "one fragment was written by one of {} tasks, and another by one of {} tasks, so both may contain the \
                 same values of identity columns",
                lane.of(),
                other.of()
            ))
            .with_hint("number all tasks of a write together"));
        }
        if !lanes.insert(lane) {
            return Err(Error::invalid_argument(format!(
                "two fragments belong to the task {} of {}, and have the same values of identity columns",
                lane.number(),
                lane.of()
            ))
            .with_hint("pass one fragment of each task: a worker that ran twice has counted twice"));
        }
        values.extend(counted.values.iter().map(|(column, (first, last))| (column.clone(), *first, *last)));
    }
    Ok(values)
}

/// Returns the decoded path of a file. The path must be in the write's directory, and spelled as this crate's writers
/// spell it.
fn located_below(resolver: &PathResolver, directory: &str, file: &FragmentFile) -> Result<String> {
    let outside = || {
        Error::invalid_argument(format!("a file of a fragment is not in the write's directory {directory}"))
            .at_path(&file.path)
    };
    match resolver.parse(&file.path).map_err(|error| outside().with_source(error))? {
        LogPath::Relative(decoded)
            if path::encode(&decoded) == file.path
                && decoded.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')) =>
        {
            Ok(decoded)
        }
        _ => Err(outside()),
    }
}

/// Refuses statistics that are not a JSON object, or whose number of rows differs from the number in the fragment.
fn check_statistics(file: &FragmentFile) -> Result<()> {
    serde_json::from_str::<Map<String, Value>>(&file.stats).map_err(|error| {
        Error::invalid_argument("the statistics in a fragment are not a JSON object").with_source(error)
    })?;
    match num_records(&file.stats) {
        Some(rows) if rows == file.rows => Ok(()),
        rows => Err(Error::invalid_argument(format!(
            "a fragment has {} rows for a file, but the statistics have {}",
            file.rows,
            rows.map_or("none".to_owned(), |rows| rows.to_string())
        ))),
    }
}

/// Returns the action that adds a file.
fn added(file: &FragmentFile, spec: &TableWriteSpec) -> Result<Add> {
    let size = i64::try_from(file.size)
        .map_err(|_| Error::invalid_argument(format!("the size {} of a file is too large", file.size)))?;
    Ok(Add {
        path: file.path.clone(),
        partition_values: file.partition_values.clone().into_iter().collect(),
        size,
        modification_time: file.modification_time,
        data_change: true,
        stats: Some(file.stats.clone()),
        tags: spec.tags(),
        ..Add::default()
    })
}

/// Refuses partition values unless there is exactly one valid value for each of the table's partition columns.
fn check_partition_values(add: &Add, spec: &TableWriteSpec) -> Result<()> {
    let columns = spec.physical_partition_columns();
    if !add.partition_values.keys().all(|name| columns.contains(name))
        || add.partition_values.len() != columns.len()
    {
        let names: Vec<&str> = add.partition_values.keys().map(String::as_str).collect();
        return Err(Error::invalid_argument(format!(
            "a fragment has values of the partition columns [{}], but the table has [{}]",
            names.join(", "),
            columns.join(", ")
        )));
    }
    for (name, physical) in spec.partition_columns().iter().zip(columns) {
        let primitive = spec.schema().field(name).and_then(|field| field.data_type.as_primitive());
        let Some(primitive) = primitive else { continue };
        let value = add.partition_values.get(physical).and_then(Option::as_deref);
        PartitionColumnBuilder::new(name, primitive).append(value).map_err(|error| {
            Error::invalid_argument(format!(
                "a fragment has an invalid value of the partition column '{name}'"
            ))
            .with_source(error)
        })?;
    }
    ensure_required(add, spec)
}

/// Refuses a file whose directory does not match its partition values.
fn check_place(decoded: &str, directory: &str, add: &Add, spec: &TableWriteSpec) -> Result<()> {
    let (place, _) = decoded.rsplit_once('/').unwrap_or_default();
    let expected = format!("{directory}/{}", spec.directory_of(&add.partition_values));
    if place == expected.trim_end_matches('/') {
        return Ok(());
    }
    Err(Error::invalid_argument("the partition values of a fragment differ from its file's directory"))
}

/// Checks that the files of the fragments exist in the store, with the sizes that the fragments state. Returns the
/// paths of all other files in the write's directory.
fn compare_with_store(
    storage: &Storage,
    directory: &str,
    named: &BTreeMap<String, &FragmentFile>,
) -> Result<Vec<String>> {
    let listed = storage.list_after(directory, "")?;
    let mut sizes: HashMap<String, u64> =
        listed.into_iter().map(|file| (format!("{directory}/{}", file.name), file.size)).collect();
    for (decoded, file) in named {
        match sizes.remove(decoded) {
            Some(size) if size == file.size => {}
            Some(size) => {
                return Err(Error::corrupt_data(format!(
                    "a file has {size} bytes, but its fragment says {}",
                    file.size
                ))
                .at_path(&file.path)
                .with_hint("write the fragment again"));
            }
            None => {
                return Err(Error::new(ErrorKind::FileNotFound, "a file of a fragment does not exist")
                    .at_path(&file.path)
                    .with_hint(
                        "make sure that the table's location is the same place for the coordinator and all workers",
                    ));
            }
        }
    }
    let mut unnamed: Vec<String> = sizes.into_keys().collect();
    unnamed.sort_unstable();
    Ok(unnamed)
}
