//! Where the servers are installed.

use std::path::{Path, PathBuf};

/// Returns the path of `program` below the directory of the servers.
///
/// # Panics
/// The servers are not installed.
pub(super) fn program(program: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/servers");
    let path = directory.join(program);
    assert!(
        directory.join(".complete").is_file() && path.is_file(),
        "no {program} in {}; install it: make .cache/servers/.complete",
        directory.display()
    );
    path
}
