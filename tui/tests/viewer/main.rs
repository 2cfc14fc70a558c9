//! The viewer over real traces: keys in, screens out.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod filters;
#[cfg(test)]
mod keys_seen;
#[cfg(test)]
mod live;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod picture;
#[cfg(test)]
mod points;
#[cfg(test)]
mod random;
#[cfg(test)]
mod ranges;
#[cfg(test)]
mod ranks;
#[cfg(test)]
mod reducer;
#[cfg(test)]
mod report_words;
#[cfg(test)]
mod screens;
#[cfg(test)]
mod trace;
#[cfg(test)]
mod truth;
#[cfg(test)]
mod worker;
