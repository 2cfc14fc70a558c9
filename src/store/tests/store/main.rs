//! Tests of the trace file through its public interface.

#[cfg(test)]
mod actions;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod call_numbers;
#[cfg(test)]
mod common;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod follow;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod query;
#[cfg(test)]
mod ranges;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod schema;
