//! Clustering columns. Protocol: "Clustered Table".

use deltalog::{ColumnPath, TableChange, alter_table};
use deltalog_testkit::judge::{Intent, Outcome, Write};
use serde_json::{Map, Value};

use crate::session::Session;

/// The columns that are chosen.
const CHOICES: [&[&str]; 4] = [&[], &["id"], &["class"], &["class", "id"]];

/// Chooses other clustering columns for the newest version, or for the version of the handle.
pub fn cluster(session: &mut Session<'_>) {
    if !session.cast.is_clustered {
        return super::append(session);
    }
    let columns = CHOICES[session.process.below(CHOICES.len() as u64) as usize];
    let mark = session.mark("clustering");
    let chosen = columns.iter().map(|column| (*column).to_owned()).collect();
    let write = Write { clusters: Some((chosen, mark.clone())), ..Write::default() };
    session.operate("cluster", Intent::write(write), |session, _| {
        let base = session.base(3)?;
        let change =
            TableChange::ClusterBy(columns.iter().map(|column| ColumnPath::new([*column])).collect());
        let marked = Map::from_iter([("userMetadata".to_owned(), Value::from(mark))]);
        match alter_table(&base, &change, marked, &session.environment)? {
            Some(committed) => {
                Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
            }
            None => Ok(Outcome::Done),
        }
    });
}
