//! Bin packing: decides which files are merged into one file, and which bins are committed together.

/// Packs `items`, in order, into bins of at most `most` bytes each. A larger item gets its own bin.
///
/// Only neighbors are packed together. Rows that were written at about the same time often have similar values, so
/// the statistics of the new file still allow scans to skip it.
pub(super) fn packed<T>(
    items: impl IntoIterator<Item = T>,
    most: u64,
    size: impl Fn(&T) -> u64,
) -> Vec<Vec<T>> {
    let mut bins: Vec<Vec<T>> = Vec::new();
    let mut filled = 0_u64;
    for item in items {
        let bytes = size(&item);
        match bins.last_mut() {
            Some(bin) if filled.saturating_add(bytes) <= most => {
                filled += bytes;
                bin.push(item);
            }
            _ => {
                filled = bytes;
                bins.push(vec![item]);
            }
        }
    }
    bins
}

/// Divides `items`, in order, into batches that end once they have at least `enough` bytes.
pub(super) fn batched<T>(items: Vec<T>, enough: u64, size: impl Fn(&T) -> u64) -> Vec<Vec<T>> {
    let mut batches: Vec<Vec<T>> = Vec::new();
    let mut filled = enough;
    for item in items {
        if filled >= enough {
            batches.push(Vec::new());
            filled = 0;
        }
        filled = filled.saturating_add(size(&item));
        if let Some(batch) = batches.last_mut() {
            batch.push(item);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// No item is lost or reordered, and bins are not larger than allowed, except for single items that are too
        /// large.
        #[test]
        fn bins_hold_all_items_in_order(items in prop::collection::vec(0..40_u64, 0..60), most in 1..50_u64) {
            let bins = packed(items.clone(), most, |item| *item);
            prop_assert_eq!(bins.concat(), items.clone());
            for bin in &bins {
                prop_assert!(bin.len() == 1 || bin.iter().sum::<u64>() <= most);
            }
            for pair in bins.windows(2) {
                prop_assert!(pair[0].iter().sum::<u64>() + pair[1][0] > most);
            }
            // No new file fits into a bin together with its neighbor, so a second run has nothing to do.
            let sums: Vec<u64> = bins.iter().map(|bin| bin.iter().sum()).collect();
            let again = packed(sums.clone(), most, |item| *item);
            prop_assert!(again.len() <= bins.len());

            let batches = batched(items.clone(), most, |item| *item);
            prop_assert_eq!(batches.concat(), items);
            for batch in batches.iter().rev().skip(1) {
                prop_assert!(batch.iter().sum::<u64>() >= most);
            }
        }
    }
}
