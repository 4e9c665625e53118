//! Finds files that store numbers and dates with a type that the table's schema has since widened. (PROTOCOL, "Type
//! Widening".)
//!
//! Only footers are read. Partition columns do not count, because their values are in the log.

use super::faults::guarded;
use super::file::{Opener, Source};
use super::{DataFile, FileRows};
use crate::error::Result;
use crate::runtime::by_name::names_of;

/// Returns whether `file` stores a number or a date with a type that differs from the table's, at any nesting depth.
///
/// # Errors
/// Returns the same errors as [`Opener::open`].
pub(super) fn converts_numbers(opener: &Opener, file: &DataFile) -> Result<bool> {
    // Deleted rows do not affect the types in a file.
    let all = DataFile { rows: FileRows::All, ..file.clone() };
    let open = guarded(|| opener.open(&all));
    let Some(open) = open.map_err(|error| opener.located(error, &file.path.to_string()))? else {
        return Ok(false);
    };
    let fields = open.metadata.schema().fields();
    let names = names_of(fields);
    Ok(open.sources.iter().any(|source| match source {
        Source::Constant(_) => false,
        Source::File(name, plan) => {
            let in_file = names.find(name).and_then(|at| fields.get(at));
            in_file.is_some_and(|field| plan.converts_numbers(field.data_type()))
        }
    }))
}
