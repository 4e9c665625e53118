//! The files that the tasks of a CLONE copy, packed for the Java side.
//!
//! ```text
//! i32 length, the version of this wheel
//! i32 T, T tasks:
//!     i32 length of its files:
//!         i32 number, i64 size, u8 whether the path is absolute and not below the root of the source
//!         i32 length, path
//!         i32 length, directory of the copy: empty, or with a slash at the end
//!         i32 length, end of the name of the copy
//! ```
//!
//! - Files are shared out as Spark shares out those of a scan: the largest first, and each costs as much as some bytes
//!   of it.

use std::cmp::Reverse;

use deltalog::Result;
use deltalog::engine::clone::{ClonePlan, FileCopy};

use super::packer::{Packed, PlannedPath, blob, count, pack_version, text};
use super::{Plan, file_number};

/// How many bytes of files a task copies at most, as `spark.sql.files.maxPartitionBytes`.
const TASK: u64 = 128 << 20;
/// How many bytes could be copied in the time that it takes to open a file, as `spark.sql.files.openCostInBytes`.
const OPEN: u64 = 4 << 20;

/// Packs the files that `plan` has copied, for so many tasks at least, if they can be divided.
pub(crate) fn pack_copies(plan: &ClonePlan, parallelism: u64) -> Result<Plan> {
    let mut files: Vec<(usize, FileCopy<'_>)> = plan.copies().enumerate().collect();
    files.sort_by_key(|(_, file)| Reverse(file.size));
    let all = plan.bytes().saturating_add(OPEN.saturating_mul(files.len() as u64));
    let most = (all / parallelism.max(1)).clamp(OPEN, TASK);
    let (mut tasks, mut filled) = (Vec::<Vec<u8>>::new(), most);
    for (number, file) in &files {
        let size = file.size.saturating_add(OPEN);
        filled = filled.saturating_add(size);
        if filled > most {
            filled = size;
            tasks.push(Vec::new());
        }
        if let Some(task) = tasks.last_mut() {
            pack_copy(*number, file, task)?;
        }
    }
    let mut head = Vec::new();
    pack_version(&mut head)?;
    head.extend(count(tasks.len())?.to_be_bytes());
    let mut parts = vec![head];
    for task in tasks {
        let mut packed = Vec::with_capacity(4 + task.len());
        blob(&task, &mut packed)?;
        parts.push(packed);
    }
    let kept = files.len() as u64;
    Ok(Plan {
        packed: Packed::of(parts, "leave it to the driver, by a larger spark.deltalog.minSizeForExecutors")?,
        kept,
        total: kept,
    })
}

fn pack_copy(number: usize, file: &FileCopy<'_>, task: &mut Vec<u8>) -> Result<()> {
    let path = PlannedPath::new(file.from);
    task.extend(file_number(number)?.to_be_bytes());
    task.extend(file.size.to_be_bytes());
    task.push(u8::from(matches!(path, PlannedPath::Outside(_))));
    text(path.as_str(), task)?;
    text(file.directory, task)?;
    text(file.name, task)
}
