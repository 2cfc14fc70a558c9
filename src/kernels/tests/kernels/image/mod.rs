//! Images of GPU code, built by hand: what is read of them, and that damage is told.

mod damage;
mod forms;
mod layouts;
mod listings;
mod selection;
