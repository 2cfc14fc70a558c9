//! `streamsan mcp`: traces for programs that read programs, over the Model Context Protocol
//! (<https://modelcontextprotocol.io/specification>), on standard input and output.
//!
//! A tool answers what a command of the same name prints, and nothing of the protocol is known
//! outside of `server`. Files are read below the roots only, which the user names: the client is a
//! model that may have read the trace of a stranger.
//!
//! Deliberately absent: running programs, and writing files.

mod answers;
mod roots;
mod server;

pub(crate) use server::mcp;
