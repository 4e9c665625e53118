//! What may be shared and moved between threads: said here, so that a change of it does not compile.

use deltalog::engine::scan::{FileList, RowStream, TableScan};
use deltalog::engine::transaction::{Committed, Conflict, Outcome, TableDefinition, Transaction};
use deltalog::engine::write::DataWriter;
use deltalog::{Environment, Error, PendingWrite, Snapshot, Storage, WriteRequest};

const fn shared<T: Send + Sync + 'static>() {}
const fn moved<T: Send + 'static>() {}

const _: () = {
    shared::<Snapshot>();
    shared::<Storage>();
    shared::<Environment>();
    shared::<Error>();
    shared::<Transaction>();
    shared::<TableDefinition>();
    shared::<Outcome>();
    shared::<Committed>();
    shared::<Conflict>();
    shared::<PendingWrite>();
    shared::<WriteRequest>();
    shared::<TableScan>();
    moved::<RowStream>();
    moved::<FileList>();
    moved::<DataWriter>();
};
