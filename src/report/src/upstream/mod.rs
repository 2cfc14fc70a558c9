//! Races known in libraries: a shipped list, for pairs that are true and not the program's to mend.
//!
//! The list is `known-upstream.txt`, whose first lines describe its syntax. Other tools ship theirs
//! too: Valgrind's `default.supp` (patterns of stacks), ThreadSanitizer's built-in suppressions
//! (`called_from_lib:`), Rust's advisories (versions, references, dates).
//!
//! Invariant: an entry matches only pairs whose calls the library itself makes, whatever its
//! patterns are. A pair with a kernel or a copy of the program on a side is never hidden.

mod entry;
mod list;

pub use entry::UpstreamEntry;
pub use list::KnownUpstream;
