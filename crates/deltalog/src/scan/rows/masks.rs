//! Selections within selections, as masks of one bit for each row.
//!
//! A predicate selects rows among the rows that a deletion vector leaves. The Parquet reader composes two masks bit by
//! bit. If many separate rows are deleted, this takes longer than decoding the rows. The functions of this module take
//! a few instructions for 64 rows, and some more for each deleted row.

use arrow::buffer::{BooleanBuffer, Buffer};
use parquet::arrow::arrow_reader::RowSelection;

/// Returns the rows of `outer` that `inner` selects. `inner` has a bit for each row that `outer` selects.
pub(super) fn within(outer: &RowSelection, inner: BooleanBuffer) -> RowSelection {
    match outer.as_mask() {
        Some(outer) if outer.count_set_bits() == inner.len() => {
            RowSelection::from_boolean_buffer(composed(outer, &inner))
        }
        _ => outer.and_then(&RowSelection::from_boolean_buffer(inner)),
    }
}

/// Returns `outer` with its set bits replaced by the bits of `inner`, in their order.
pub(super) fn composed(outer: &BooleanBuffer, inner: &BooleanBuffer) -> BooleanBuffer {
    let mut bits = Bits { words: inner.bit_chunks().iter_padded().collect(), next: 0 };
    let words: Vec<u64> =
        outer.bit_chunks().iter_padded().map(|word| deposited(bits.take(word.count_ones()), word)).collect();
    BooleanBuffer::new(Buffer::from_vec(words), 0, outer.len())
}

/// Returns `word` with its set bits replaced by the lowest bits of `bits`, in their order.
fn deposited(mut bits: u64, word: u64) -> u64 {
    let set = word.count_ones();
    if set > u64::BITS / 2 {
        // Insert the zeros.
        let mut zeros = !word;
        while zeros != 0 {
            let lower = (zeros & zeros.wrapping_neg()) - 1;
            bits = (bits & lower) | ((bits & !lower) << 1);
            zeros &= zeros - 1;
        }
        return bits & word;
    }
    let (mut rest, mut found) = (word, 0);
    while rest != 0 {
        let lowest = rest & rest.wrapping_neg();
        found |= if bits & 1 == 1 { lowest } else { 0 };
        bits >>= 1;
        rest &= rest - 1;
    }
    found
}

/// The bits of a mask, from the first on.
struct Bits {
    words: Vec<u64>,
    next: usize,
}

impl Bits {
    /// Returns the next `count` bits as the lowest bits of a word, whose other bits are arbitrary.
    fn take(&mut self, count: u32) -> u64 {
        let (index, shift) = (self.next / 64, self.next % 64);
        self.next += count as usize;
        let word = |index: usize| self.words.get(index).copied().unwrap_or_default();
        match shift {
            0 => word(index),
            _ => (word(index) >> shift) | (word(index + 1) << (64 - shift)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// No, few, most, or all bits are set.
    fn mask() -> impl Strategy<Value = Vec<bool>> {
        prop_oneof![Just(0.0), Just(0.02), Just(0.5), Just(0.9), Just(1.0)]
            .prop_flat_map(|share| prop::collection::vec(prop::bool::weighted(share), 0..400))
    }

    proptest! {
        #[test]
        fn masks_are_composed_as_the_parquet_reader_does(outer in mask(), bits in mask(), skipped in 0..70usize) {
            let skipped = skipped.min(outer.len());
            // Masks may begin within a word.
            let sliced = BooleanBuffer::from(outer.clone()).slice(skipped, outer.len() - skipped);
            let selected = sliced.count_set_bits();
            let inner: Vec<bool> = bits.into_iter().chain(std::iter::repeat(true)).take(selected).collect();
            let inner = BooleanBuffer::from(inner);
            let outer = RowSelection::from_boolean_buffer(sliced);
            let expected = outer.and_then(&RowSelection::from_boolean_buffer(inner.clone()));
            prop_assert_eq!(within(&outer, inner.clone()), expected.clone());
            let runs: RowSelection = outer.iter().copied().collect::<Vec<_>>().into();
            prop_assert_eq!(within(&runs, inner), expected);
        }
    }
}
