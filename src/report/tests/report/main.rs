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
#[cfg(test)]
mod libraries;
mod marked;
#[cfg(test)]
mod printable;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod ranges;
#[cfg(test)]
mod settled;
#[cfg(test)]
mod several;
#[cfg(test)]
mod stacks;
mod streams;
#[cfg(test)]
mod upstream;
