//! Plans a scan: lists its files, and divides them into the partitions that DataFusion executes.

use arrow::datatypes::SchemaRef;
use datafusion_common::Statistics;
use deltalog::engine::scan::{DataFile, DataFiles, RowScan};
use deltalog::{FileListing, Predicate, Result, Snapshot};

use crate::statistics::statistics;

/// A scan that has been planned.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) snapshot: Snapshot,
    pub(crate) scan: RowScan,
    pub(crate) predicate: Option<Predicate>,
    /// The files of each partition. There is at least one partition.
    pub(crate) groups: Vec<Vec<DataFile>>,
    /// The number of threads that read a partition. It is more than one if there are at most half as many partitions as
    /// DataFusion asked for.
    pub(crate) threads: usize,
    pub(crate) statistics: Statistics,
}

impl Planned {
    /// Lists the files of `snapshot` that may contain rows for which `predicate` is true.
    pub(crate) fn new(
        snapshot: Snapshot,
        columns: Option<&[String]>,
        predicate: Option<Predicate>,
        target_partitions: usize,
    ) -> Result<Self> {
        let mut scan = rows(&snapshot)?;
        if let Some(columns) = columns {
            scan = scan.with_projection(columns)?;
        }
        let mut listing = FileListing::new(&snapshot);
        if let Some(predicate) = &predicate {
            let bound = predicate
                .bind(snapshot.arrow_schema())
                .map_err(|error| error.in_table(snapshot.storage().url()))?;
            scan = scan.with_predicate(&bound)?;
            listing = listing.predicate(predicate)?;
        }
        let files = DataFiles::new(&snapshot, listing)?.collect::<Result<Vec<_>>>()?;
        let statistics = statistics(&snapshot, &scan.schema(), predicate.as_ref(), &files)?;
        let groups = divided(files, target_partitions);
        let threads = (target_partitions / groups.len()).max(1);
        Ok(Self { snapshot, scan, predicate, groups, threads, statistics })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.scan.schema()
    }
}

/// Returns a scan of all rows, in which strings are views.
pub(crate) fn rows(snapshot: &Snapshot) -> Result<RowScan> {
    Ok(RowScan::of(snapshot)?.with_view_types().in_any_order())
}

/// Divides files into at most `most` groups of about the same size. Each file, beginning with the largest, is added
/// to the group that is smallest so far. There is at least one group.
fn divided(mut files: Vec<DataFile>, most: usize) -> Vec<Vec<DataFile>> {
    files.sort_by_key(|file| std::cmp::Reverse(file.size));
    let count = most.min(files.len()).max(1);
    let mut groups: Vec<(u64, Vec<DataFile>)> = vec![(0, Vec::new()); count];
    for file in files {
        if let Some((bytes, group)) = groups.iter_mut().min_by_key(|(bytes, group)| (*bytes, group.len())) {
            *bytes = bytes.saturating_add(file.size);
            group.push(file);
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}
