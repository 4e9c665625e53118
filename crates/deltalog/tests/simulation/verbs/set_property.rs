//! Changes of the metadata. Protocol: "Change Metadata".

use deltalog::{TableChange, alter_table};
use deltalog_testkit::judge::{Intent, MINE, Outcome, Write};

use crate::session::Session;

/// Sets a property of the newest version, or of the version of the handle, to a value that it has never had.
pub fn set_property(session: &mut Session<'_>) {
    let value = session.mark("value");
    let write = Write { property: Some(value.clone()), ..Write::default() };
    session.operate("set a property", Intent::write(write), |session, _| {
        let base = session.base(3)?;
        let change = TableChange::SetProperties([(MINE.to_owned(), value)].into());
        let committed = alter_table(&base, &change, Default::default(), &session.environment)?;
        let committed = committed.expect("the value is new");
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
