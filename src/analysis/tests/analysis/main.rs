//! The engine through its public interface: small programs with the findings that they must give,
//! and random ones against a reference by brute force.
#![forbid(unsafe_code)]

mod brute_force;
mod order;
mod order_cases;
mod programs;
mod properties;
