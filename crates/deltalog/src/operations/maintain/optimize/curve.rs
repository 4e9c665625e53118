//! Curves that visit all cells of a grid. Cells that are near each other on the curve are near each other in each
//! dimension.
//!
//! ```text
//!   Z-order         0─1 4─5        Hilbert         0─1 14─15        the order of the cells of a grid of 4 × 4;
//!                    ╱ ╱ ╱                           │ │            a Hilbert curve never jumps
//!                   2─3 6─7                        3─2 13─12
//!                                                  │       │
//!                   8─9 12─13                      4 7─8  11
//!                    ╱  ╱  ╱                       │ │ │   │
//!                   10─11 14─15                    5─6 9──10
//! ```
//!
//! A file that contains one section of the curve therefore has only a few different values of each column. A section
//! of the Z-order may consist of two parts of the grid that are far from each other; the bounds of its file then
//! include everything between them.

/// The maximum number of dimensions of a curve.
pub(super) const MOST_DIMENSIONS: usize = 32;

/// The order in which a curve visits the cells of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Curve {
    /// A Hilbert curve, on which each cell is a neighbor of the previous cell.
    #[default]
    Hilbert,
    /// The Z-order (Morton order), which interleaves the bits of all dimensions.
    ZOrder,
}

/// Returns how many bits of each coordinate are used in a grid with this number of dimensions.
pub(super) fn bits(dimensions: usize) -> u32 {
    match dimensions {
        0 | 1 => 16,
        // A position on the curve has 128 bits, which all coordinates share.
        _ => (128 / dimensions as u32).min(12),
    }
}

/// Computes the positions of cells on a curve through a grid with a fixed number of dimensions.
pub(super) struct Grid {
    curve: Curve,
    bits: u32,
    /// For each value of a byte, the same bits at their places in a position: bit `i` is moved to bit `i *
    /// dimensions`.
    spread: Vec<u128>,
}

impl Grid {
    pub(super) fn new(curve: Curve, dimensions: usize) -> Self {
        let spread = |byte: u32| {
            (0..8).filter(|bit| byte >> bit & 1 == 1).fold(0, |all, bit| all | 1 << (bit * dimensions))
        };
        // With more than 16 dimensions, fewer than 8 bits of each coordinate are used.
        let bytes = 1 << bits(dimensions).min(8);
        Self { curve, bits: bits(dimensions), spread: (0..bytes).map(spread).collect() }
    }

    /// Returns the position of a cell on the curve. Each of the cell's coordinates has [`bits`] bits. The call
    /// overwrites the coordinates.
    pub(super) fn place(&self, cell: &mut [u32]) -> u128 {
        if self.curve == Curve::Hilbert {
            transpose(cell, self.bits);
        }
        self.interleaved(cell)
    }

    /// Interleaves the bits of all coordinates, from the highest to the lowest.
    fn interleaved(&self, cell: &[u32]) -> u128 {
        let spread = |byte: u32| self.spread.get(byte as usize).copied().unwrap_or_default();
        cell.iter().fold(0, |place, coordinate| {
            let high = spread(coordinate >> 8);
            let high = if high == 0 { 0 } else { high << (8 * cell.len()) };
            place << 1 | high | spread(coordinate & 0xff)
        })
    }
}

/// Replaces the coordinates of a cell with coordinates whose interleaved bits are its position on a Hilbert curve.
/// Algorithm: J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004), `AxestoTranspose`.
fn transpose(cell: &mut [u32], bits: u32) {
    let [_, _, ..] = cell else { return };
    // Undo the turns that the curve makes in smaller cubes, beginning with the largest cube.
    for bit in (1..bits).rev() {
        let below = (1 << bit) - 1;
        for at in 0..cell.len() {
            // The mask has all bits set for a cell in the upper half of the cube, and no bits for a cell in the lower
            // half. It avoids a branch that the processor could not predict, because each half contains half of the
            // cells.
            let is_upper = 0_u32.wrapping_sub(cell[at] >> bit & 1);
            let swapped = (cell[0] ^ cell[at]) & below & !is_upper;
            cell[0] ^= below & is_upper | swapped;
            cell[at] ^= swapped;
        }
    }
    // Encode as Gray code.
    for at in 1..cell.len() {
        cell[at] ^= cell[at - 1];
    }
    let last = cell[cell.len() - 1];
    let flipped =
        (1..bits).filter(|bit| last >> bit & 1 == 1).fold(0, |flipped, bit| flipped ^ ((1 << bit) - 1));
    cell.iter_mut().for_each(|coordinate| *coordinate ^= flipped);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all cells in the order of the curve, and checks that no two cells have the same position.
    fn walk(curve: Curve, dimensions: u32, bits: u32) -> Vec<Vec<u32>> {
        let grid = Grid { bits, ..Grid::new(curve, dimensions as usize) };
        let mut cells = vec![Vec::new(); 1 << (dimensions * bits)];
        for number in 0..cells.len() as u32 {
            let cell: Vec<u32> =
                (0..dimensions).map(|at| number >> (at * bits) & ((1 << bits) - 1)).collect();
            let place = grid.place(&mut cell.clone()) as usize;
            assert!(std::mem::replace(&mut cells[place], cell).is_empty(), "{place}");
        }
        cells
    }

    #[test]
    fn each_cell_of_hilberts_curve_is_next_to_the_one_before() {
        for (dimensions, bits) in [(1, 6), (2, 1), (2, 5), (3, 4), (4, 3), (5, 2), (6, 2)] {
            for pair in walk(Curve::Hilbert, dimensions, bits).windows(2) {
                let steps: u32 = pair[0].iter().zip(&pair[1]).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(steps, 1, "{dimensions} dimensions: {pair:?}");
            }
        }
    }

    #[test]
    fn the_z_order_takes_bits_in_turns() {
        let cells = walk(Curve::ZOrder, 2, 2);
        let first: Vec<(u32, u32)> = cells.iter().take(6).map(|cell| (cell[0], cell[1])).collect();
        assert_eq!(first, [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3)]);
        assert_eq!(Grid::new(Curve::ZOrder, 3).place(&mut [0b101, 0b010, 0b111]), 0b101_011_101);
    }

    /// With one dimension, cells are in the order of their only coordinate.
    #[test]
    fn one_dimension_is_its_own_order() {
        for curve in [Curve::Hilbert, Curve::ZOrder] {
            let grid = Grid::new(curve, 1);
            assert!((0..1 << 16).all(|rank| grid.place(&mut [rank]) == u128::from(rank)));
        }
    }

    #[test]
    fn positions_fit_in_128_bits() {
        for dimensions in 1..=MOST_DIMENSIONS {
            let bits = bits(dimensions);
            assert!((4..=16).contains(&bits) && bits as usize * dimensions <= 128, "{dimensions}");
            let mut largest = vec![(1 << bits) - 1; dimensions];
            let expected = u128::MAX >> (128 - bits as usize * dimensions);
            let grid = Grid::new(Curve::ZOrder, dimensions);
            assert_eq!(grid.place(&mut largest), expected, "{dimensions}");
            // Each bit has its own place in the position. The highest bit of the first dimension comes first.
            for (at, bit) in (0..dimensions).flat_map(|at| (0..bits).map(move |bit| (at, bit))) {
                let mut cell = vec![0; dimensions];
                cell[at] = 1 << bit;
                let expected = 1 << (bit as usize * dimensions + dimensions - 1 - at);
                assert_eq!(grid.place(&mut cell), expected, "{dimensions}: {at}, {bit}");
            }
        }
    }
}
