//! From an instruction to its line: the three encodings of a code object's line table.
//!
//! Pure: the table's bytes in, a line out. Tables that end early give the line known so far.
//!
//! Facts: CPython's Objects/lnotab_notes.txt (3.9 and 3.10) and Objects/locations.md or
//! InternalDocs/code_objects.md (3.11 and later).

/// How a code object maps instructions to lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineTable {
    /// 3.9: `co_lnotab`, pairs of an increment of the offset and one of the line.
    Increments,
    /// 3.10: `co_linetable` of PEP 626, pairs of a length and an increment of the line.
    Ranges,
    /// 3.11 and later: `co_linetable` of PEP 657, entries of various length.
    Locations,
}

/// Increment of the line in [`LineTable::Ranges`] that means: no line.
const NO_LINE: i8 = -128;

impl LineTable {
    /// The line of the instruction at byte `offset` of the bytecode; before the first instruction
    /// (a negative offset) the line of the definition. `None` where the compiler gave no line.
    pub(crate) fn line(self, table: &[u8], first: i32, offset: i32) -> Option<u32> {
        let line = match self {
            _ if offset < 0 => Some(first),
            LineTable::Increments => Some(increments(table, first, offset)),
            LineTable::Ranges => ranges(table, first, offset),
            LineTable::Locations => locations(table, first, offset),
        };
        line.and_then(|line| u32::try_from(line).ok())
    }
}

fn increments(table: &[u8], first: i32, offset: i32) -> i32 {
    let (mut line, mut address) = (first, 0i32);
    for pair in table.chunks_exact(2) {
        address += i32::from(pair[0]);
        if address > offset {
            break;
        }
        line += i32::from(pair[1] as i8);
    }
    line
}

fn ranges(table: &[u8], first: i32, offset: i32) -> Option<i32> {
    let (mut line, mut end) = (first, 0i32);
    for pair in table.chunks_exact(2) {
        let delta = pair[1] as i8;
        if delta != NO_LINE {
            line += i32::from(delta);
        }
        end += i32::from(pair[0]);
        if end > offset {
            return (delta != NO_LINE).then_some(line);
        }
    }
    Some(line)
}

fn locations(table: &[u8], first: i32, offset: i32) -> Option<i32> {
    let (mut line, mut end) = (first, 0i32);
    let mut position = 0;
    while let Some(&head) = table.get(position) {
        let body = table.get(position + 1..).unwrap_or_default();
        let kind = (head >> 3) & 15;
        line = line.wrapping_add(match kind {
            // 10 to 12: the line's increment is in the kind; 13 and 14: it comes first.
            10..=12 => i32::from(kind) - 10,
            13 | 14 => signed(body),
            _ => 0,
        });
        end = end.wrapping_add((i32::from(head & 7) + 1) * 2);
        if end > offset {
            return (kind != 15).then_some(line);
        }
        // Only the first byte of an entry has its top bit set.
        position += 1 + body.iter().take_while(|byte| **byte & 0x80 == 0).count();
    }
    Some(line)
}

/// A signed number: six bits a byte, the lowest first, bit 6 set where more follow; the lowest bit
/// of the whole is the sign.
fn signed(bytes: &[u8]) -> i32 {
    let (mut value, mut shift) = (0u32, 0);
    for byte in bytes.iter().take(6) {
        value |= u32::from(byte & 63) << shift;
        if byte & 64 == 0 {
            break;
        }
        shift += 6;
    }
    let magnitude = (value >> 1) as i32;
    if value & 1 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LineTable::{Increments, Locations, Ranges};

    #[test]
    fn lines_of_instructions() {
        // Hand-made after CPython's notes on the formats: table, first line, (offset, line)s.
        type Case = (LineTable, &'static [u8], i32, &'static [(i32, Option<u32>)]);
        let cases: &[Case] = &[
            (Increments, &[], 7, &[(-1, Some(7)), (0, Some(7)), (100, Some(7))]),
            (
                Increments,
                &[0, 1, 6, 1, 44, 5],
                1,
                &[(-1, Some(1)), (0, Some(2)), (4, Some(2)), (6, Some(3)), (50, Some(8))],
            ),
            // A jump back by 2, and a jump of more than a byte holds.
            (
                Increments,
                &[4, 0xfe, 255, 0, 45, 1],
                10,
                &[(4, Some(8)), (299, Some(8)), (304, Some(9))],
            ),
            (
                Ranges,
                &[6, 1, 8, 1, 2, 0x80, 4, 0xff],
                1,
                &[(-2, Some(1)), (0, Some(2)), (6, Some(3)), (14, None), (16, Some(2))],
            ),
            // An empty range that only moves the line, then a long one in two.
            (Ranges, &[0, 100, 254, 27, 46, 0], 1, &[(0, Some(128)), (298, Some(128))]),
            (
                Locations,
                // No line (2 units); one line on, columns in two bytes (1 unit); short form, same
                // line (8 units); no columns, -2 lines (1 unit); long form, +70 lines (1 unit).
                &[0xf9, 0xd8, 4, 9, 0x87, 0x11, 0xe8, 5, 0xf0, 0x40 | 12, 2, 0, 1, 1],
                20,
                &[
                    (-2, Some(20)),
                    (0, None),
                    (2, None),
                    (4, Some(21)),
                    (6, Some(21)),
                    (21, Some(21)),
                    (22, Some(19)),
                    (24, Some(89)),
                    (500, Some(89)),
                ],
            ),
        ];
        for (format, table, first, lines) in cases {
            for (offset, line) in *lines {
                let found = format.line(table, *first, *offset);
                assert_eq!(found, *line, "{format:?} {table:?} at {offset}");
            }
        }
    }

    #[test]
    fn any_bytes_are_a_table() {
        let mut state = 1u32;
        let mut bytes = Vec::new();
        for _ in 0..2000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push((state >> 24) as u8);
            for format in [Increments, Ranges, Locations] {
                for offset in [-2, 0, 500, i32::MAX] {
                    let _ = format.line(&bytes, 1, offset);
                }
            }
            if bytes.len() > 64 {
                bytes.clear();
            }
        }
    }
}
