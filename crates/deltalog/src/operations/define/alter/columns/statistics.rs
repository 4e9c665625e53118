//! Keeps the properties `delta.dataSkippingStatsColumns` and `deltalog.bloomFilterColumns`, which list columns by name,
//! up to date when a column is renamed or dropped.
//!
//! Without this, new files would silently lack the statistics and Bloom filters of a renamed column, because a name
//! that is not in the schema is ignored.

use crate::expression::predicate::ColumnPath;
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::overlap;
use crate::write::{BLOOM_FILTER_COLUMNS, STATISTICS_COLUMNS, parse_statistics_columns};

/// In the properties, replaces the column `old` and its nested fields by `new`, or removes them if `new` is `None`. A
/// property that cannot be parsed remains unchanged.
pub(super) fn follow(draft: &mut Draft<'_>, old: &ColumnPath, new: Option<&ColumnPath>) {
    for property in [STATISTICS_COLUMNS, BLOOM_FILTER_COLUMNS] {
        if let Some(text) = draft.metadata.configuration.get_mut(property) {
            follow_in(text, old, new);
        }
    }
}

fn follow_in(text: &mut String, old: &ColumnPath, new: Option<&ColumnPath>) {
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
