//! The command from outside. Programs that use the driver are tested in the end-to-end package.

mod command;
mod formats;
mod hostile;
mod html;
mod kernels;
mod log;
mod mcp;
mod names;
mod recorded;
mod schemas;
mod several;
mod view;
