//! All parts of the crate, for the Python binding, the benches and the tests of this repository.
//!
//! Nothing here is part of the public API: it changes without notice.

macro_rules! engine {
    ($($module:ident),* $(,)?) => {
        $(
            #[allow(missing_docs, reason = "the modules document themselves")]
            pub mod $module {
                pub use crate::$module::*;
            }
        )*
    };
}

engine! {
    changes, checkpoint, clone, commit_actions, constraints, definition, deletion_vector, distributed, dml,
    environment, error, history, interrupt, log, optimize, parallel, pending_write, predicate, protocol, replay, scan,
    snapshot, stats, storage, transaction, verify, write,
}
