//! The references to sidecars in the top-level file of a checkpoint. Protocol: "Sidecar File Information".

use crate::error::{Error, Result};
use crate::log::LOG_DIRECTORY;
use crate::protocol::log_name::LogFileName;
use crate::protocol::{Action, Sidecar, path};

/// The sidecars that a top-level file refers to.
#[derive(Default)]
pub(super) struct References {
    pub(super) actions: Vec<Sidecar>,
    /// The paths of the sidecars, relative to the table's root.
    pub(super) paths: Vec<String>,
}

impl References {
    pub(super) fn among(actions: Vec<Action>) -> Result<Self> {
        let mut found = Self::default();
        for action in actions {
            if let Action::Sidecar(sidecar) = action {
                found.paths.push(sidecar_path(&sidecar)?);
                found.actions.push(sidecar);
            }
        }
        Ok(found)
    }
}

/// Returns the path of a sidecar. Protocol: "Sidecar File Information".
fn sidecar_path(sidecar: &Sidecar) -> Result<String> {
    let decoded = path::decode(&sidecar.path)?;
    match LogFileName::parse(&format!("_sidecars/{decoded}")) {
        Some(name @ LogFileName::Sidecar(_)) if !decoded.contains(char::is_control) => Ok(name.path()),
        _ => Err(Error::corrupt_log(format!(
            "the sidecar '{}' is not the name of a file in {LOG_DIRECTORY}/_sidecars",
            sidecar.path
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Sidecar files must always reside in the table's own _delta_log/_sidecars directory".
    #[test]
    fn sidecar_paths_are_bare_names() {
        let of = |path: &str| sidecar_path(&Sidecar { path: path.to_owned(), ..Sidecar::default() });
        assert_eq!(of("a%20b.parquet").unwrap(), "_delta_log/_sidecars/a b.parquet");
        for path in [
            "",
            "../x.parquet",
            "a/x.parquet",
            "a%2Fx.parquet",
            "/x.parquet",
            "file:///x.parquet",
            "%2e%2e%2fx.parquet",
            "x.json",
            ".x.parquet",
            "x%00.parquet",
        ] {
            assert!(of(path).is_err(), "{path}");
        }
    }
}
