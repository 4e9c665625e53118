//! Asserts that types can be shared between threads or sent to another thread. Otherwise this file does not compile.

use deltalog::TableDefinition;
use deltalog::engine::commit::{Committed, Conflict, Outcome, Transaction};
use deltalog::engine::scan::{FileList, RowStream, TableScan};
use deltalog::engine::write::DataWriter;
use deltalog::{Environment, Error, PendingWrite, Snapshot, Storage, WriteRequest};

const fn can_be_shared<T: Send + Sync + 'static>() {}
const fn can_be_sent<T: Send + 'static>() {}

const _: () = {
    can_be_shared::<Snapshot>();
    can_be_shared::<Storage>();
    can_be_shared::<Environment>();
    can_be_shared::<Error>();
    can_be_shared::<Transaction>();
    can_be_shared::<TableDefinition>();
    can_be_shared::<Outcome>();
    can_be_shared::<Committed>();
    can_be_shared::<Conflict>();
    can_be_shared::<PendingWrite>();
    can_be_shared::<WriteRequest>();
    can_be_shared::<TableScan>();
    can_be_sent::<RowStream>();
    can_be_sent::<FileList>();
    can_be_sent::<DataWriter>();
};
