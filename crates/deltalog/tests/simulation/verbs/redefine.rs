//! Replaces the table with a new one. Protocol: "Change Metadata".

use deltalog::{CreationMode, PendingWrite, TableDefinition};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Replaces the table, as of the newest version or of the handle's version, with a new table that has different rows.
pub fn redefine(session: &mut Session<'_>) {
    session.operate("redefine", Intent::write(Write::default()), |session, intend| {
        let base = session.base(3)?;
        let write = Write { replaces: Some(base.version()), redefines: true, ..Write::default() };
        intend(Intent::write(write.clone()));
        let mut definition = TableDefinition::new(session.cast.schema());
        definition.configuration.clone_from(&session.cast.properties);
        let mode = CreationMode::CreateOrReplace;
        let pending = PendingWrite::define_on(&base, &definition, mode, Vec::new(), &session.environment)?;
        let pending = pending.expect("only the mode ignore returns nothing");
        let files = session.write_files(&pending, None)?;
        intend(session.adding(&files, write));
        let operation = pending.definition_operation(true);
        let committed = pending.commit_or_fail(files.adds, operation)?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
