//! Where a call comes from.

#[cfg_attr(not(test), expect(dead_code, reason = "captured from the next step on"))]
pub(crate) mod python;
