//! Which bytes a load through a tensor map reads.
//!
//! A tensor map is opaque, and libraries bring some that they made without the driver. The places of
//! its fields were found by encoding some 2,000 maps with `cuTensorMapEncodeTiled` and looking which
//! bits change (`tests/gpu/access` has that test). What is not understood (im2col, interleaved
//! layouts, unknown element types) stays unresolved and is never guessed.

use std::ops::Range;

use crate::device::TensorLoad;

/// The mode of a load: tiled.
const TILED: u32 = 0;

/// Bytes of an element, by the number of its type in a map; the driver's numbering of types is not
/// the public one.
const ELEMENTS: [u64; 11] = [1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2];

struct Map {
    address: u64,
    element: u64,
    rank: usize,
    sizes: [i64; 5],
    /// Bytes; the innermost is `element`.
    strides: [u64; 5],
    boxes: [i64; 5],
    steps: [i64; 5],
}

impl Map {
    fn read(words: &[u64; 16]) -> Option<Self> {
        let bits = |at: usize, count: usize| {
            let mut low = words[at / 64] >> (at % 64);
            if at % 64 + count > 64 {
                low |= words[at / 64 + 1] << (64 - at % 64);
            }
            low & ((1 << count) - 1)
        };
        let (kind, interleave) = (bits(64, 4), bits(75, 2));
        let element = *ELEMENTS.get(bits(71, 4) as usize)?;
        let rank = bits(68, 3) as usize + 1;
        // Tiled maps of the driver have kind 0, those of cuBLAS and cuDNN kind 2.
        if !matches!(kind, 0 | 2) || interleave != 0 || rank > 5 {
            return None;
        }
        let mut map = Self {
            address: bits(0, 57),
            element,
            rank,
            sizes: [0; 5],
            strides: [element; 5],
            boxes: [0; 5],
            steps: [0; 5],
        };
        for at in 0..rank {
            map.sizes[at] = bits(256 + 32 * at, 32) as i64 + 1;
            map.boxes[at] = bits(440 + 8 * at, 8) as i64 + 1;
            map.steps[at] = bits(416 + 3 * at, 3) as i64 + 1;
            if at > 0 {
                let low = bits(64 + 32 * at, 32) << 4;
                map.strides[at] = low | bits(220 + 4 * at, 4) << 36;
            }
        }
        Some(map)
    }

    fn rows(&self, at: &[i32; 5], axis: usize, base: u64, found: &mut Vec<Range<u64>>) {
        let (size, step) = (self.sizes[axis], self.steps[axis]);
        let from = i64::from(at[axis]);
        let to = from + self.boxes[axis];
        if axis == 0 && step == 1 {
            let (from, to) = (from.max(0), to.min(size));
            if from < to {
                let bytes = |index: i64| base + index as u64 * self.element;
                found.push(bytes(from)..bytes(to));
            }
            return;
        }
        let mut index = from;
        while index < to {
            if (0..size).contains(&index) {
                let inside = base + index as u64 * self.strides[axis];
                match axis {
                    0 => found.push(inside..inside + self.element),
                    _ => self.rows(at, axis - 1, inside, found),
                }
            }
            index += step;
        }
    }
}

/// Appends the bytes that a load reads; false where it is not understood, and nothing is appended.
pub(crate) fn resolve(load: &TensorLoad, found: &mut Vec<Range<u64>>) -> bool {
    let Some(map) = Map::read(&load.map) else { return false };
    if load.mode != TILED || load.rank as usize != map.rank {
        return false;
    }
    map.rows(&load.coordinates, map.rank - 1, map.address, found);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map as the driver writes it: tiled, of rank 2, 100 by 20 floats at a pitch of 512 bytes,
    /// boxes of 16 by 8.
    fn map() -> [u64; 16] {
        let mut words = [0u64; 16];
        let mut put = |at: usize, count: usize, value: u64| {
            words[at / 64] |= value << (at % 64);
            if at % 64 + count > 64 {
                words[at / 64 + 1] |= value >> (64 - at % 64);
            }
        };
        put(0, 57, 0x1000_0000);
        put(68, 3, 1);
        put(71, 4, 7);
        put(96, 32, 512 >> 4);
        for (axis, (size, tile)) in [(100, 16), (20, 8)].into_iter().enumerate() {
            put(256 + 32 * axis, 32, size - 1);
            put(440 + 8 * axis, 8, tile - 1);
        }
        words
    }

    fn load(x: i32, y: i32, map: [u64; 16]) -> TensorLoad {
        let coordinates = [x, y, 0, 0, 0];
        TensorLoad { key: 0, coordinates, rank: 2, mode: 0, arguments: 0, padding: [0; 3], map }
    }

    #[test]
    fn a_box_is_cut_at_the_tensor() {
        let mut found = Vec::new();
        assert!(resolve(&load(88, 15, map()), &mut found));
        let row = |y: u64| 0x1000_0000 + y * 512 + 88 * 4..0x1000_0000 + y * 512 + 400;
        assert_eq!(found, (15..20).map(row).collect::<Vec<_>>());
        found.clear();
        assert!(resolve(&load(-20, 0, map()), &mut found));
        assert_eq!(found, []);
    }

    #[test]
    fn other_modes_and_kinds_stay_unresolved() {
        let mut found = Vec::new();
        let mut other = load(0, 0, map());
        other.mode = 1;
        assert!(!resolve(&other, &mut found));
        let mut interleaved = map();
        interleaved[1] |= 1 << 11;
        assert!(!resolve(&load(0, 0, interleaved), &mut found));
        assert_eq!(found, []);
    }
}
