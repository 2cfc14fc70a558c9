//! What a kernel touches, concluded from its PTX or machine code: an abstract interpretation over the
//! control-flow graph, and the bytes of one launch.

mod affine;
mod arithmetic;
mod budget;
mod condition;
mod constraints;
mod display;
mod effects;
mod evaluator;
mod exit_values;
mod expression;
mod flatten;
mod flow;
mod grid_control;
mod hash_index;
mod instantiate;
mod interpret;
mod liveness;
mod loops;
mod machine;
mod memo;
mod path_condition;
mod plan;
mod prune;
mod result;
mod strided;
mod summary;
mod transfers;
mod translation_bounds;
mod values;

pub use budget::TooLarge;
pub use expression::{ExprId, Index, Operator, Symbol, SymbolId};
pub use grid_control::Waited;
pub use instantiate::{Launch, Reach, Touched, Workspace, instantiate};
pub use memo::Shapes;
pub use result::{
    AccessMode, Base, GlobalUse, HeldPointer, KernelAccess, PointerWord, SymbolicAccess, Touch,
    WordKind,
};
pub use summary::{analyse, analyse_code, analyse_kernel};
