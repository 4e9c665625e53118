//! The property `delta.dataSkippingStatsColumns`, which names columns and must follow them.
//!
//! Otherwise files would have no statistics of a renamed column any more, and nobody would notice: a name that is not
//! in the schema is ignored.

use crate::alter::draft::Draft;
use crate::alter::path::overlap;
use crate::predicate::ColumnPath;
use crate::write::{STATISTICS_COLUMNS, parse_statistics_columns};

/// Replaces the column `old`, and the fields in it, by `new` in the property; without `new`, they are left out. A
/// property that cannot be parsed stays as it is.
pub(super) fn follow(draft: &mut Draft<'_>, old: &ColumnPath, new: Option<&ColumnPath>) {
    let Some(text) = draft.metadata.configuration.get_mut(STATISTICS_COLUMNS) else { return };
    let Some(names) = parse_statistics_columns(text) else { return };
    let old = old.parts();
    let is_inside = |name: &[String]| name.len() >= old.len() && overlap(name, old);
    if !names.iter().any(|name| is_inside(name)) {
        return;
    }
    let followed = names.into_iter().filter_map(|name| match (is_inside(&name), new) {
        (false, _) => Some(ColumnPath::new(name)),
        (true, None) => None,
        (true, Some(new)) => {
            Some(ColumnPath::new(new.parts().iter().cloned().chain(name.into_iter().skip(old.len()))))
        }
    });
    *text = followed.map(|path| path.to_string()).collect::<Vec<_>>().join(",");
}
