//! How far a recording saw what ordinary code of the host does with memory that the device uses.

use crate::MemoryKind;

/// How far the host's own loads and stores were watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAccesses {
    /// Asynchronous operations on page-locked or managed memory that could be fenced.
    pub operations: u64,
    /// The ones of them whose memory was fenced, all of it or some.
    pub fenced: u64,
    /// The ones of the fenced whose memory was fenced in part.
    pub in_part: u64,
    /// Why ranges were not fenced, or in part, with their number: words that follow the number.
    pub not_fenced: Vec<(String, u64)>,
    /// Why allocations were no longer fenced, with their number: a relative clause.
    pub left_alone: Vec<(String, u64)>,
    /// Why the loads and stores were not watched, or no longer from some moment on; `None` where
    /// they were.
    pub unwatched: Option<Unwatched>,
}

/// Why the host's own loads and stores were not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwatched {
    /// Nobody asked for it.
    Off,
    /// The library that keeps the program's signal handlers was not loaded.
    NoLibrary,
    /// The program sets a handler for SIGSEGV that could not be kept.
    OwnHandler,
    /// The driver touches page-locked memory by itself.
    DriverTouches,
    /// The kernel refuses to change the protection of such memory.
    Refused,
}

impl Unwatched {
    /// All reasons.
    pub const ALL: [Self; 5] =
        [Self::Off, Self::NoLibrary, Self::OwnHandler, Self::DriverTouches, Self::Refused];

    /// The stable id, which traces and JSON hold.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NoLibrary => "no-library",
            Self::OwnHandler => "own-handler",
            Self::DriverTouches => "driver-touches",
            Self::Refused => "refused",
        }
    }

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Off => {
                "--host-accesses=fence, the default, sees the host's own loads and stores of \
                 page-locked and managed memory"
            }
            Self::NoLibrary => {
                "the library that keeps the program's signal handlers was not loaded"
            }
            Self::OwnHandler => "the program handles SIGSEGV itself",
            Self::DriverTouches => "the driver touches page-locked memory by itself",
            Self::Refused => "the system refuses to protect such memory",
        }
    }
}

impl HostAccesses {
    /// Nobody asked for it.
    pub fn off() -> Self {
        Self { unwatched: Some(Unwatched::Off), ..Self::default() }
    }

    /// Both together: what was not watched in one was not watched.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            operations: self.operations.saturating_add(other.operations),
            fenced: self.fenced.saturating_add(other.fenced),
            in_part: self.in_part.saturating_add(other.in_part),
            not_fenced: added(self.not_fenced, other.not_fenced),
            left_alone: added(self.left_alone, other.left_alone),
            unwatched: self.unwatched.or(other.unwatched),
        }
    }

    /// `watched` or `not watched`.
    pub const fn word(&self) -> &'static str {
        match self.unwatched {
            None => "watched",
            Some(_) => "not watched",
        }
    }

    /// The words of reports: `watched - 5 of 7 asynchronous operations on host memory fenced`.
    pub fn description(&self) -> String {
        let Self { operations, fenced, in_part, .. } = self;
        let mut words = self.word().to_owned() + " - ";
        if let Some(reason) = self.unwatched {
            words += reason.description();
            if *fenced > 0 {
                words += &format!(
                    "; {fenced} of {operations} operations on host memory were fenced till then"
                );
            }
            return words;
        }
        if *operations == 0 {
            return words + "nothing used page-locked or managed memory asynchronously";
        }
        words += &format!("{fenced} of {operations} asynchronous operations on host memory fenced");
        if *in_part > 0 {
            words += &format!(", {in_part} of them in part");
        }
        for (what, reasons) in
            [(["range", "ranges"], &self.not_fenced), (ALLOCATIONS, &self.left_alone)]
        {
            for (reason, count) in reasons.iter().filter(|(_, count)| *count > 0) {
                let noun = what[usize::from(*count != 1)];
                words += &format!("; {count} {noun} {reason}");
            }
        }
        words
    }
}

const ALLOCATIONS: [&str; 2] = ["allocation left alone,", "allocations left alone,"];

/// The sums by reason, in the order in which the reasons come.
fn added(mut one: Vec<(String, u64)>, other: Vec<(String, u64)>) -> Vec<(String, u64)> {
    for (reason, count) in other {
        match one.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => one.push((reason, count)),
        }
    }
    one
}

impl MemoryKind {
    /// Whether ordinary code of the host can touch such memory while the device uses it, and fences
    /// could show that.
    pub const fn is_shared_with_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Registered | Self::Managed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> HostAccesses {
        HostAccesses {
            operations: 7,
            fenced: 5,
            in_part: 2,
            not_fenced: vec![("passed over for want of room".to_owned(), 2)],
            left_alone: vec![("which the host touches all the time".to_owned(), 1)],
            unwatched: None,
        }
    }

    #[test]
    fn it_says_how_far_and_why_not() {
        assert_eq!(
            watched().description(),
            "watched - 5 of 7 asynchronous operations on host memory fenced, 2 of them in part; 2 \
             ranges passed over for want of room; 1 allocation left alone, which the host touches all \
             the time"
        );
        let stopped = HostAccesses { unwatched: Some(Unwatched::OwnHandler), ..watched() };
        assert_eq!(
            stopped.description(),
            "not watched - the program handles SIGSEGV itself; 5 of 7 operations on host memory were \
             fenced till then"
        );
        assert!(HostAccesses::default().description().contains("nothing used"));
        assert!(HostAccesses::off().description().starts_with("not watched - --host-accesses"));
    }

    #[test]
    fn several_add_up_and_one_that_was_not_watched_counts() {
        let both = watched().joined(watched());
        assert_eq!((both.operations, both.left_alone[0].1, both.not_fenced.len()), (14, 2, 1));
        assert_eq!(both.unwatched, None);
        assert_eq!(watched().joined(HostAccesses::off()).unwatched, Some(Unwatched::Off));
    }

    #[test]
    fn ids_differ() {
        for (at, reason) in Unwatched::ALL.iter().enumerate() {
            assert!(Unwatched::ALL[..at].iter().all(|other| other.id() != reason.id()));
        }
    }
}
