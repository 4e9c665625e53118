//! New columns. Protocol: "Change Metadata", "Schema Serialization Format".

use deltalog::{ColumnPath, NewColumn, PrimitiveType, StructField, TableChange, alter_table};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Adds a column whose name no other process uses, based on the newest version or on the version of the handle.
pub fn add_column(session: &mut Session<'_>) {
    let column = session.mark("column");
    let write = Write { column: Some(column.clone()), ..Write::default() };
    session.operate("add a column", Intent::write(write), |session, _| {
        let base = session.base(3)?;
        let field = StructField::new(column, PrimitiveType::Long, true);
        let change = TableChange::AddColumns(vec![NewColumn::new(ColumnPath::new::<&str>([]), field)]);
        let committed = alter_table(&base, &change, Default::default(), &session.environment)?;
        let committed = committed.expect("the column is new");
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
