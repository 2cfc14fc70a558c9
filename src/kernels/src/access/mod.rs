//! What a kernel touches, concluded from its PTX or machine code: an abstract interpretation over the
//! control-flow graph, and the bytes of one launch.

mod domain;
mod fixpoint;
mod launch;
mod lower;
mod summary;

pub use domain::budget::TooLarge;
pub use domain::expression::{ExprId, Index, Operator, Symbol, SymbolId};
pub use fixpoint::grid_control::Waited;
pub use launch::instantiate::{Launch, Reach, Touched, Workspace, instantiate};
pub use launch::memo::Shapes;
pub use summary::conclude::{analyse, analyse_code, analyse_kernel};
pub use summary::result::{
    AccessMode, Base, GlobalUse, HeldPointer, KernelAccess, PointerWord, SymbolicAccess, Touch,
    WordKind,
};
