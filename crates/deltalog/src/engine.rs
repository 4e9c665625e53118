//! All parts of the crate, for the Python binding, the benches and the tests of this repository.
//!
//! Nothing here is part of the public API: it changes without notice.

macro_rules! engine {
    ($($module:ident: $($place:ident)::+),* $(,)?) => {
        $(
            #[allow(missing_docs, reason = "the modules document themselves")]
            pub mod $module {
                pub use crate::$($place)::+::*;
            }
        )*
    };
}

engine! {
    changes: scan::changes,
    checkpoint: upkeep::checkpoint,
    clone: operations::exchange::clone,
    commit: commit,
    commit_actions: log::commit_actions,
    constraints: expression::constraints,
    define: operations::define,
    deletion_vector: log::deletion_vector,
    distributed: operations::insert::distributed,
    dml: operations::dml,
    environment: runtime::environment,
    error: error,
    history: snapshot::history,
    insert: operations::insert,
    interrupt: runtime::interrupt,
    log: log,
    optimize: operations::maintain::optimize,
    parallel: runtime::parallel,
    predicate: expression::predicate,
    protocol: protocol,
    replay: log::replay,
    rewrite: operations::rewrite,
    scan: scan,
    snapshot: snapshot,
    stats: values::stats,
    storage: storage,
    verify: snapshot::verify,
    write: write,
}
