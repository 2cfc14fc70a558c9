//! The forms for other tools.

pub(crate) mod code_quality;
pub(crate) mod dot;
pub(crate) mod github;
pub(crate) mod html;
pub(crate) mod junit;
pub(crate) mod perfetto;
mod place;
mod rows;
pub(crate) mod sarif;
mod words;

pub use dot::Neighbourhood;
pub use html::HtmlInput;
pub use perfetto::PerfettoWriter;
pub use rows::{FindingRow, MemoryOfRow, SideOfRow};
