//! (header to come)
mod interp;
