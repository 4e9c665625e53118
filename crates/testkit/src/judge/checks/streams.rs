//! Checks that streams have returned the right files.

use std::collections::BTreeMap;

use super::Case;
use crate::judge::history::{Outcome, Streamed};

/// Checks that each stream has returned, exactly once, the files of the snapshot with which it began and the files that
/// each later version adds.
pub(super) fn once(case: &Case) -> Result<(), String> {
    let mut streams: BTreeMap<(&str, u64), Vec<&Streamed>> = BTreeMap::new();
    for operation in &case.operations {
        if let Some(Outcome::Streamed(streamed)) = &operation.outcome {
            streams.entry((operation.process.as_str(), streamed.stream)).or_default().push(streamed);
        }
    }
    for ((process, number), batches) in streams {
        let located = |error: String| format!("stream {number} of {process}: {error}");
        let Some(last) = batches.last() else { continue };
        let mut left = counted(batches.iter().flat_map(|batch| &batch.files));
        let (whole, begun) = expected(case, last).map_err(located)?;
        for file in &whole {
            if !take(&mut left, file) {
                return Err(located(format!("'{file}' is missing before {last:?}")));
            }
        }
        let mut begun = counted(&begun);
        if let Some(file) = left
            .iter()
            .find(|(file, count)| (0..**count).any(|_| !take(&mut begun, file)))
            .map(|(file, _)| file)
        {
            return Err(located(format!("'{file}' is not of the stream, or comes twice, up to {last:?}")));
        }
    }
    Ok(())
}

/// Returns two lists of files for the end of a batch: the files that the stream must have returned, and the files of
/// the version in which the batch ends, which the stream may have returned in part.
fn expected(case: &Case, last: &Streamed) -> Result<(Vec<String>, Vec<String>), String> {
    let state = case.state(last.began_with);
    let state = state.ok_or_else(|| format!("there is no version {}", last.began_with))?;
    let snapshot: Vec<String> = state.files.iter().cloned().collect();
    if last.is_initial {
        return Ok((Vec::new(), snapshot));
    }
    let added = |version: u64| {
        let commit = case.commit(version);
        let files = commit.into_iter().flat_map(|commit| commit.adds.difference(&commit.restated));
        files.cloned().collect::<Vec<_>>()
    };
    let tail = (last.began_with + 1..last.version).flat_map(added);
    Ok((snapshot.into_iter().chain(tail).collect(), added(last.version)))
}

fn counted<'a>(files: impl IntoIterator<Item = &'a String>) -> BTreeMap<&'a str, u64> {
    let mut counts = BTreeMap::new();
    for file in files {
        *counts.entry(file.as_str()).or_default() += 1;
    }
    counts
}

/// Removes one occurrence of a file; returns whether there was one.
fn take(counts: &mut BTreeMap<&str, u64>, file: &str) -> bool {
    match counts.get_mut(file) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}
