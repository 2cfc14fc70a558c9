//! Tables by dense ids, most of which come, go and never come back.
//!
//! Ids are given in order of first appearance, so a vector would serve, except for the room of ids
//! that are gone. Invariant: pages without any value are given back. A table takes the room of its
//! values, and an eighth of a byte for each id that ever was.

/// Number of ids in a page.
const PAGE: usize = 64;

/// Values by dense id.
#[derive(Clone, Debug)]
pub struct Table<T> {
    pages: Vec<Option<Box<Page<T>>>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Page<T> {
    used: usize,
    slots: [Option<T>; PAGE],
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Table<T> {
    /// A table that holds nothing.
    pub const fn new() -> Self {
        Self { pages: Vec::new(), len: 0 }
    }

    /// Number of ids with a value.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no id has a value.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of an id.
    #[inline]
    pub fn get(&self, id: usize) -> Option<&T> {
        self.pages.get(id / PAGE)?.as_ref()?.slots[id % PAGE].as_ref()
    }

    /// The mutable value of an id.
    #[inline]
    pub fn get_mut(&mut self, id: usize) -> Option<&mut T> {
        self.pages.get_mut(id / PAGE)?.as_mut()?.slots[id % PAGE].as_mut()
    }

    /// Whether the id has a value.
    pub fn contains(&self, id: usize) -> bool {
        self.get(id).is_some()
    }

    /// Gives an id a value; returns the former one.
    pub fn insert(&mut self, id: usize, value: T) -> Option<T> {
        let page = self.page(id);
        let before = page.slots[id % PAGE].replace(value);
        page.used += usize::from(before.is_none());
        self.len += usize::from(before.is_none());
        before
    }

    /// The value of an id, created where the id has none.
    #[inline]
    #[expect(clippy::missing_panics_doc, reason = "the page was made")]
    pub fn get_or_insert_with(&mut self, id: usize, make: impl FnOnce() -> T) -> &mut T {
        let at = id / PAGE;
        if !self.pages.get(at).is_some_and(Option::is_some) {
            self.page(id);
        }
        let page = self.pages[at].as_mut().expect("made above");
        let slot = &mut page.slots[id % PAGE];
        if slot.is_none() {
            page.used += 1;
            self.len += 1;
        }
        slot.get_or_insert_with(make)
    }

    /// Removes and returns the value of an id.
    pub fn remove(&mut self, id: usize) -> Option<T> {
        let slot = self.pages.get_mut(id / PAGE)?;
        let page = slot.as_mut()?;
        let value = page.slots[id % PAGE].take()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            *slot = None;
        }
        Some(value)
    }

    /// Drops the values for which `keep` does not hold.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        for slot in &mut self.pages {
            let Some(page) = slot else { continue };
            for value in &mut page.slots {
                if value.as_mut().is_some_and(|value| !keep(value)) {
                    *value = None;
                    page.used -= 1;
                    self.len -= 1;
                }
            }
            if page.used == 0 {
                *slot = None;
            }
        }
    }

    /// All values and their ids, by id.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let pages = self.pages.iter().enumerate();
        let pages = pages.filter_map(|(at, page)| Some((at * PAGE, page.as_ref()?)));
        pages.flat_map(|(first, page)| {
            let slots = page.slots.iter().enumerate();
            slots.filter_map(move |(at, value)| Some((first + at, value.as_ref()?)))
        })
    }

    /// All values, by id.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }

    fn page(&mut self, id: usize) -> &mut Page<T> {
        let at = id / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let none = || Box::new(Page { used: 0, slots: [const { None }; PAGE] });
        self.pages[at].get_or_insert_with(none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_id_and_listed_in_order() {
        let mut table = Table::new();
        for id in [700, 3, 64, 63] {
            assert_eq!(table.insert(id, id * 2), None);
        }
        assert_eq!(table.insert(3, 7), Some(6));
        assert_eq!((table.len(), table.get(64), table.get(65)), (4, Some(&128), None));
        assert_eq!(table.get(70_000), None);
        let ids: Vec<_> = table.iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [3, 63, 64, 700]);
        *table.get_or_insert_with(65, || 0) += 1;
        assert_eq!(table.get_or_insert_with(65, || 9), &1);
        table.retain(|value| *value != 1);
        assert_eq!((table.len(), table.get(65)), (4, None));
    }

    #[test]
    fn what_is_gone_takes_no_room() {
        let mut table = Table::new();
        table.insert(0, "stays");
        for id in 1..10_000 {
            table.insert(id, "goes");
            assert_eq!(table.remove(id), Some("goes"));
            assert_eq!(table.remove(id), None);
        }
        assert_eq!(table.pages.iter().flatten().count(), 1);
        assert_eq!(table.values().collect::<Vec<_>>(), [&"stays"]);
    }
}
