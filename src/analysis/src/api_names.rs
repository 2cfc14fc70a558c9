//! Names of entry points as small numbers: every access record names an entry point, and a number
//! costs nothing to copy.
//!
//! Invariant: two names have the same number exactly when they are equal, and a number never
//! changes.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of names that are found by their address alone.
const RECENT: usize = 32;

/// The number of a driver entry point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Api(u32);

/// The names of the entry points that operations have used so far.
#[derive(Debug, Default)]
pub(crate) struct ApiNames {
    names: Vec<Arc<str>>,
    by_name: BTreeMap<Arc<str>, Api>,
    /// The address of a name and its number, by the address. Producers of operations share their
    /// names. `names` keeps the names in here alive, so that no other name can get the address.
    recent: [(usize, u32); RECENT],
}

impl ApiNames {
    /// Returns the number of a name.
    #[inline]
    pub(crate) fn number(&mut self, name: &Arc<str>) -> Api {
        let address = Arc::as_ptr(name).addr();
        let (known, number) = self.recent[address / 16 % RECENT];
        if known == address { Api(number) } else { self.look_up(name, address) }
    }

    #[inline(never)]
    fn look_up(&mut self, name: &Arc<str>, address: usize) -> Api {
        let api = match self.by_name.get(name) {
            Some(&api) => api,
            None => {
                let api = Api(self.names.len() as u32);
                self.names.push(Arc::clone(name));
                self.by_name.insert(Arc::clone(name), api);
                api
            }
        };
        if Arc::ptr_eq(&self.names[api.0 as usize], name) {
            self.recent[address / 16 % RECENT] = (address, api.0);
        }
        api
    }

    /// Returns the name of a number.
    pub(crate) fn name(&self, api: Api) -> &Arc<str> {
        &self.names[api.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_one_number_wherever_they_lie() {
        let mut names = ApiNames::default();
        let texts = ["cuLaunchKernel", "cuEventRecord"];
        let (first, again) = (texts.map(Arc::<str>::from), texts.map(Arc::<str>::from));
        let numbers = first.each_ref().map(|name| names.number(name));
        assert_ne!(numbers[0], numbers[1]);
        for _ in 0..2 {
            assert_eq!(first.each_ref().map(|name| names.number(name)), numbers);
            assert_eq!(again.each_ref().map(|name| names.number(name)), numbers);
        }
        assert_eq!(numbers.map(|number| &**names.name(number)), texts);
    }
}
