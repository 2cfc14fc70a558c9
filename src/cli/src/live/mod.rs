//! `run --view`: the viewer beside a run that goes on.
//!
//! The run itself stays on the thread that it always has. The viewer has a thread of its own and
//! reads the trace by connections of its own; another one takes what the program prints, which would
//! otherwise be written over the timelines. Whatever becomes of the viewer, the run goes on.

mod printed;
mod screen;
mod viewer;

pub(crate) use printed::Printed;
pub(crate) use viewer::LiveViewer;
