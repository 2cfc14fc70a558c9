//! The front end for PTX.

pub(in crate::access) mod arithmetic;
pub(in crate::access) mod effects;
pub(in crate::access) mod flatten;
pub(in crate::access) mod transfers;
pub(in crate::access) mod values;
