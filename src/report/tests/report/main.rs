//! Tests of the report through its public interface.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod kernels;
mod libraries;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod stacks;
#[cfg(test)]
mod upstream;
