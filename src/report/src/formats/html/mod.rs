//! One HTML file of a trace, which needs no network, and no JavaScript where it is text.
//!
//! Invariants:
//! - The page loads nothing. Its Content-Security-Policy allows the one style sheet and the one script
//!   that stand in it, by their hashes, and nothing else ([`assets`]).
//! - Names come from strangers: they are printable, and every string is escaped by the templates
//!   (`maud`), which take nothing but their own text unescaped. Data for the script is JSON without
//!   `<`.
//! - The page stays below 2 MB, whatever the trace holds: findings get room in the order of the report,
//!   and those that do not fit in full are told shorter, which the page says ([`findings`]).
//! - The same input gives the same bytes.
//!
//! Deliberately absent: a second wording. The page puts the report's own words into places.

mod around;
mod assets;
mod class_pages;
mod drawing;
mod finding;
mod findings;
mod memory;
mod page;
mod scope;
mod statistics;
mod tight;
mod timeline;

pub use page::HtmlInput;
pub(crate) use page::render;
