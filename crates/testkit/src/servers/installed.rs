//! The locations where the servers are installed.

use std::path::{Path, PathBuf};

/// Returns the path of `program` below the directory of the servers.
///
/// # Panics
/// Panics if the servers are not installed.
pub(super) fn program(program: &str) -> PathBuf {
    let path = directory("servers").join(program);
    assert!(path.is_file(), "there is no {}; install it: make -B .cache/servers/.complete", path.display());
    path
}

/// Returns the directory that the command `make .cache/NAME/.complete` fills.
///
/// # Panics
/// Panics if the directory is not complete.
pub(super) fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache").join(name);
    assert!(
        directory.join(".complete").is_file(),
        "{} is not complete; fill it: make .cache/{name}/.complete",
        directory.display()
    );
    directory
}
