//! (header to come)
