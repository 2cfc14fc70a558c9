//! Pieces of code, unpacked and parsed. A container is asked for one kernel after the other, so
//! the latest pieces stay. Threads that want the same piece wait for the one that makes it.

use crate::image::{CodeKind, Entry};
use crate::ptx::{self, Module};
use crate::sass::{Object, Tables};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of memory that pieces may take, roughly. The latest one stays in any case.
const MAX_KEPT: usize = 128 << 20;
/// Bytes of memory for a byte of PTX, roughly.
const MODULE_WEIGHT: usize = 12;

/// A piece of code.
#[derive(Debug)]
pub(super) enum Piece {
    Ptx(Module),
    Cubin(CubinPiece),
}

/// Machine code.
#[derive(Debug)]
pub(super) struct CubinPiece {
    tables: Arc<Tables>,
    /// Its bytes, where those of the image are packed.
    unpacked: Option<Vec<u8>>,
}

impl CubinPiece {
    /// `entry` is the one that this was made of.
    pub(super) fn object<'a>(&'a self, entry: &'a Entry<'_>) -> Result<Object<'a>, String> {
        let bytes = match &self.unpacked {
            Some(bytes) => Cow::Borrowed(&bytes[..]),
            None => entry.code().map_err(|error| error.to_string())?,
        };
        Ok(Object::of(bytes, self.tables.clone()))
    }
}

impl Piece {
    fn read(entry: &Entry<'_>) -> Result<(Self, usize), String> {
        let code = entry.code().map_err(|error| error.to_string())?;
        match entry.kind {
            CodeKind::Ptx => {
                let module = ptx::parse(&String::from_utf8_lossy(&code));
                let module = module.map_err(|error| format!("PTX that cannot be read: {error}"))?;
                Ok((Self::Ptx(module), code.len().saturating_mul(MODULE_WEIGHT)))
            }
            CodeKind::Cubin => {
                let tables = Tables::read(&code);
                let tables = Arc::new(tables.map_err(|error| format!("machine code: {error}"))?);
                let unpacked = match code {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(bytes) => Some(bytes),
                };
                let weight = tables.weight() + unpacked.as_ref().map_or(0, Vec::len);
                Ok((Self::Cubin(CubinPiece { tables, unpacked }), weight))
            }
            CodeKind::Other(kind) => Err(format!("code of kind {kind}")),
        }
    }
}

/// A piece, or why it cannot be read, and the memory that it takes.
type Made = (Result<Arc<Piece>, String>, usize);

#[derive(Debug)]
struct Held {
    /// Whether it is PTX, and the hash of its bytes.
    hash: (bool, u128),
    made: Arc<OnceLock<Made>>,
}

impl Held {
    fn weight(&self) -> usize {
        self.made.get().map_or(0, |(_, weight)| *weight)
    }
}

/// The latest pieces, the latest one last.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    held: Mutex<Vec<Held>>,
}

impl Pieces {
    /// The piece of an entry, or why it cannot be read. `hash` is that of its bytes.
    pub(super) fn get(&self, entry: &Entry<'_>, hash: u128) -> Result<Arc<Piece>, String> {
        let made = self.place((entry.kind == CodeKind::Ptx, hash));
        let (piece, _) = made.get_or_init(|| match Piece::read(entry) {
            Ok((piece, weight)) => (Ok(Arc::new(piece)), weight),
            Err(reason) => (Err(reason), 0),
        });
        piece.clone()
    }

    /// Where the piece is, or is to be made.
    fn place(&self, hash: (bool, u128)) -> Arc<OnceLock<Made>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match held.iter().position(|held| held.hash == hash) {
            Some(at) => held.remove(at),
            None => Held { hash, made: Arc::default() },
        };
        let made = place.made.clone();
        held.push(place);
        let mut sum: usize = held.iter().map(Held::weight).sum();
        while sum > MAX_KEPT && held.len() > 1 {
            sum -= held.remove(0).weight();
        }
        made
    }
}
