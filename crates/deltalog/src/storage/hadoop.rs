//! The checksums that Hadoop keeps next to local files: `.name.crc` for the file `name`.
//!
//! Hadoop refuses to read a file whose checksum does not match its content. A program that replaces a file must
//! therefore remove the checksum. Hadoop then reads the file without checking it.

use std::io::{self, ErrorKind};
use std::path::Path;

/// If Hadoop's checksum of a local file exists, removes it, because the file is about to be replaced.
///
/// # Errors
/// The errors of the file system. After an error, the file must not be replaced.
pub(super) fn remove_checksum(file: &Path) -> io::Result<()> {
    let Some(name) = file.file_name() else { return Ok(()) };
    let mut checksum = std::ffi::OsString::from(".");
    checksum.push(name);
    checksum.push(".crc");
    match std::fs::remove_file(file.with_file_name(checksum)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use crate::storage::{Replacement, Storage};

    /// Every way of replacing a file removes the checksum of this file and no other. Creating a file removes none.
    #[test]
    fn replacing_a_file_removes_the_checksum_of_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let replace: [(&str, &dyn Fn()); 3] = [
            ("put", &|| storage.put("put", "new".into()).unwrap()),
            ("conditional", &|| {
                let (_, state) = storage.get_with_state("conditional").unwrap().unwrap();
                let replaced = storage.put_if_unchanged("conditional", "new".into(), Some(&state));
                assert_eq!(replaced.unwrap(), Replacement::Done);
            }),
            ("streamed", &|| {
                let mut file = storage.replace_file("streamed").unwrap();
                file.write_all(b"new").unwrap();
                file.finish().unwrap();
            }),
        ];
        for (name, replace) in replace {
            for other in [name.to_owned(), format!(".{name}.crc"), format!(".{name}x.crc")] {
                std::fs::write(directory.path().join(other), "old").unwrap();
            }
            replace();
            assert_eq!(storage.read(name).unwrap(), "new");
            assert!(!directory.path().join(format!(".{name}.crc")).exists(), "{name}");
            assert!(directory.path().join(format!(".{name}x.crc")).exists(), "{name}");
        }
    }
}
