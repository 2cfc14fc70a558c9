//! Memory without an end. Each pointer has its own part of the address space and starts in the
//! middle of it.

use std::cell::RefCell;
use std::collections::HashMap;

use streamsan_interp::{Fault, Memory};

/// Larger than what an index in memory can reach.
pub(crate) const PART: u64 = 1 << 44;
const FIRST: u64 = 1 << 44;
/// The number of the first part that pointers in memory lead to.
const POINTED: u64 = 300;

/// The start of the pointer with a number.
pub(crate) fn pointer(number: u64) -> u64 {
    FIRST + number * PART + PART / 2
}

/// The number of the first part that pointers in variables lead to.
const HELD: u64 = 200;

/// The pointer that stands in a variable, by its number.
pub(crate) fn held_pointer(number: usize) -> u64 {
    pointer(HELD + number as u64)
}

/// Full of small words, so that indices read from it stay small, or of zeros; in the parts of
/// tables, full of pointers.
#[derive(Debug)]
pub(crate) struct Endless {
    written: RefCell<HashMap<u64, u8>>,
    salt: u64,
    tables: Vec<u64>,
    zeroed: bool,
}

impl Endless {
    /// `tables` are the numbers of parts.
    pub(crate) fn new(salt: u32, tables: Vec<u64>, zeroed: bool) -> Self {
        Self { written: RefCell::default(), salt: salt.into(), tables, zeroed }
    }

    fn fresh(&self, address: u64) -> u8 {
        let part = address.wrapping_sub(FIRST) / PART;
        let hash = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ self.salt) >> 58;
        if self.zeroed {
            0
        } else if self.tables.contains(&part) {
            let number = hash(address / 8);
            let value = pointer(POINTED + number % 4) + number * 64;
            value.to_le_bytes()[(address % 8) as usize]
        } else if address.is_multiple_of(4) {
            // Memory behind a pointer in memory may be taken for an aligned pointer itself.
            // Two words may be taken for one index.
            let mask = match (part >= POINTED, address % 8) {
                (true, _) => !7,
                (false, 4) => 1,
                (false, _) => !0,
            };
            hash(address / 4) as u8 & mask
        } else {
            0
        }
    }

    fn byte(&self, address: u64) -> u8 {
        let written = self.written.borrow().get(&address).copied();
        written.unwrap_or_else(|| self.fresh(address))
    }
}

impl Memory for Endless {
    fn load(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (at, byte) in buf.iter_mut().enumerate() {
            *byte = self.byte(addr.wrapping_add(at as u64));
        }
        Ok(())
    }

    fn store(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let mut written = self.written.borrow_mut();
        written.extend(data.iter().enumerate().map(|(at, &b)| (addr.wrapping_add(at as u64), b)));
        Ok(())
    }

    fn atomic(&self, addr: u64, size: u8, f: &mut dyn FnMut(u64) -> u64) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.load(addr, &mut bytes[..usize::from(size)])?;
        let old = u64::from_le_bytes(bytes);
        self.store(addr, &f(old).to_le_bytes()[..usize::from(size)])?;
        Ok(old)
    }
}
