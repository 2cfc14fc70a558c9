//! Every known entry point of the driver, hooked or counted, under one numbering.

use crate::api::Api;
use crate::counted::COUNTED;

/// The possible effect of a call without a record of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Asks or configures: the recorded order and accesses stay complete without it.
    Inert,
    /// Could order work or touch memory: a run that makes it cannot be called clean.
    OrdersOrTouchesMemory,
    /// An entry point that this version does not know.
    Unknown,
}

/// Number of a known entry point: hooked ones first, by their [`Api`] number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPoint(u16);

/// Number of known entry points.
pub const ENTRY_POINTS: usize = Api::COUNT + COUNTED.len();

impl EntryPoint {
    /// The entry point with this number.
    #[inline]
    pub fn from_index(index: usize) -> Option<Self> {
        (index < ENTRY_POINTS).then_some(Self(index as u16))
    }

    /// Its number.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The exact exported symbol.
    pub fn name(self) -> &'static str {
        match self.api() {
            Some(api) => api.name(),
            None => COUNTED[self.index() - Api::COUNT].0,
        }
    }

    /// The hooked call, `None` if it is only counted.
    #[inline]
    pub fn api(self) -> Option<Api> {
        Api::from_u16(self.0)
    }
}

/// All known entry points.
pub fn entry_points() -> impl Iterator<Item = EntryPoint> {
    (0..ENTRY_POINTS).filter_map(EntryPoint::from_index)
}

/// The entry point with exactly this symbol.
pub fn find_entry(name: &str) -> Option<EntryPoint> {
    entry_points().find(|entry| entry.name() == name)
}

/// The possible effect of a call that was only counted. Hooked calls are `Inert` here: their
/// records hold their effect.
pub fn effect_of(name: &str) -> Effect {
    match find_entry(name) {
        Some(entry) if entry.api().is_some() => Effect::Inert,
        Some(entry) => COUNTED[entry.index() - Api::COUNT].1,
        None => Effect::Unknown,
    }
}
