//! Random programs: recipes that shrink well, the traces they stand for, and changes to a trace
//! that must not change what is found.

mod build;
mod change;
mod recipe;
mod render;

pub(crate) use build::build;
pub(crate) use change::{
    hand_over_unfinished, insert_synchronisation, insertion, rename_and_shift, renaming,
};
pub(crate) use recipe::{
    recipe, recipe_of_short_lived_streams, recipe_of_streams_left_behind, recipe_with_long_patterns,
};
pub(crate) use render::render;
