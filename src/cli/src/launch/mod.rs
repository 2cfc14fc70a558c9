//! Starting the program under test.

mod child;
mod environment;
mod inspect;
mod libraries;
mod listing;
mod machine;
mod measuring;
mod own_directory;
mod patches;
mod preparation;
mod program;
mod torch;

pub(crate) use child::{Child, Signals, outlive_file_size_limit};
pub(crate) use environment::{Environment, RecordedEnvironment, Watched};
pub(crate) use inspect::{inspect, needed};
pub(crate) use libraries::{Libraries, unpack};
pub(crate) use listing::{become_program, is_listing};
pub(crate) use machine::records_here;
pub(crate) use measuring::{SANITIZER_VARIABLE, measuring_library};
pub(crate) use own_directory::choose as choose_directory;
pub(crate) use preparation::{try_room, try_threads};
pub(crate) use program::find;
