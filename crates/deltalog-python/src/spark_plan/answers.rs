//! What the log says of a table's partitions, packed for Spark's optimizer: i32 n, n rows of
//! [`pack_partition_row`].

use deltalog::predicate::{ColumnPath, ParseMode, parse};
use deltalog::scan::Answers;
use deltalog::{Error, Result, Snapshot};

use super::values::pack_partition_row;

/// Of so many partitions Spark can hold the answers in a plan.
const MOST_PARTITIONS: usize = 100_000;

/// The answers, pruned by `filter_sql`; None if the log does not give them exactly, or there are too many.
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
        .map_err(|_| Error::unsupported("the table has too many partitions"))?;
    let mut bytes = rows.to_be_bytes().to_vec();
    for row in 0..answers.num_rows() {
        pack_partition_row(answers.columns(), row, &mut bytes)?;
    }
    Ok(Some(bytes))
}
