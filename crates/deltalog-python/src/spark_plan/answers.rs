//! Aggregates of a table's partitions from the log, packed for Spark's optimizer: i32 n, then n rows of
//! [`pack_partition_row`].

use deltalog::engine::predicate::{ColumnPath, ParseMode, parse};
use deltalog::engine::scan::Answers;
use deltalog::{Error, Result, Snapshot};

use super::values::pack_partition_row;

/// The maximum number of partitions whose aggregates fit into a Spark plan.
const MOST_PARTITIONS: usize = 100_000;

/// Packs the aggregates, pruned by `filter_sql`. Returns `None` if the log does not have them exactly, or if
/// there are too many partitions.
pub(crate) fn pack_answers(
    snapshot: &Snapshot,
    filter_sql: &str,
    time_zone: &str,
    columns: &[String],
) -> Result<Option<Vec<u8>>> {
    let mut answers = Answers::new(snapshot);
    if !filter_sql.trim().is_empty() {
        answers = answers.pruning(parse(filter_sql, time_zone, ParseMode::Pruning)?);
    }
    let columns: Vec<_> = columns.iter().map(|name| ColumnPath::new([name])).collect();
    let Some(answers) =
        answers.by_partition(&columns)?.filter(|answers| answers.num_rows() <= MOST_PARTITIONS)
    else {
        return Ok(None);
    };
    let rows = i32::try_from(answers.num_rows())
        .map_err(|_| Error::unsupported("the table has more partitions than fit in an i32"))?;
    let mut bytes = rows.to_be_bytes().to_vec();
    for row in 0..answers.num_rows() {
        pack_partition_row(answers.columns(), row, &mut bytes)?;
    }
    Ok(Some(bytes))
}
