//! The memory accesses of kernels, from their PTX or machine code: an abstract interpretation over
//! affine expressions with path conditions, summarised for each kernel and instantiated for each
//! launch.
//!
//! A launch gives numbers: grid, block, arguments. Everything else is known before, so the analysis
//! has two parts. Once for each kernel, an abstract interpreter (Cousot and Cousot, "Abstract
//! interpretation", POPL 1977) runs over its control-flow graph. It finds for each access a
//! symbolic address and a path condition; together they are the *summary* of the kernel. For each
//! launch, the summary is *instantiated*: the addresses become affine expressions over thread
//! indices, block indices and iterations, and these become strided intervals of bytes. A launch
//! thus is to a kernel what a call is to a procedure in the functional approach of Sharir and
//! Pnueli ("Two approaches to interprocedural data flow analysis", 1981); calls within a kernel are
//! inlined.
//!
//! # Stages
//!
//! ```text
//!  ptx::Module ─ lower::ptx ──┐
//!                             ├─▶ Flat ── lower::control_flow ──▶ Graph
//!  sass::Code ── lower::sass ─┘     (steps)                         │
//!                                                                   │ fixpoint
//!                                                                   ▼
//!                    Effects: Raw accesses, each an address under a PathCondition
//!                                                                   │ summary
//!                                                                   ▼
//!                    KernelAccess: SymbolicAccesses relative to bases (kept on disk)
//!                                                                   │ launch::plan, once a kernel
//!                                                                   ▼
//!  Launch ──▶ launch::memo ──────── a new key ────────────────────▶ Plan
//!                 │                                                 │ launch::instantiate
//!                 │                        evaluator:   ExprId      ─▶ Affine
//!                 │                        constraints: Conjunction ─▶ ConstraintSet
//!                 │                        strided:     both        ─▶ Footprint
//!                 ▼                                                 ▼
//!             [Touched] ◀──── translated with the pointers ──── [Touched]
//! ```
//!
//! The `domain` is below all of them: polynomials over symbols, conditions, path conditions.
//!
//! # In the terms of the field
//!
//! - **Values** are polynomials modulo 2^64 over symbols: arguments, indices, induction variables,
//!   φs, and opaque results. Equal values have equal ids (`domain::expression`).
//! - **Loops**: a register that a loop changes is a chain of recurrences (Bachmann, Wang and Zima,
//!   "Chains of recurrences", ISSAC 1994) of the first degree, `{start, +, step}`, written as
//!   `start + step * iteration`; otherwise it is ⊤, a loop φ. Behind a loop a register has its exit
//!   value (`fixpoint`).
//! - **No-wrap conditions**: where the integer behind a value matters, and not only its residue,
//!   the analysis records the range that the integer has to lie in as a predicate, as LLVM's
//!   ScalarEvolution does (`SCEVWrapPredicate`).
//! - **Joins** make φs whose inputs have gates, the conditions under which each input is the value,
//!   as in gated single assignment (Ottenstein, Ballance and Maccabe, "The program dependence web",
//!   PLDI 1990). An access whose address is such a φ is split by its inputs.
//! - **Bytes** are strided intervals, as in value-set analysis (Balakrishnan and Reps, "Analyzing
//!   memory accesses in x86 executables", CC 2004), of up to three dimensions, clipped by
//!   constraints (`launch::strided`).
//!
//! It deviates from these in four ways:
//! - there is no widening operator: recurrences and invariants are guessed from one pass and
//!   checked by the next. A register whose guess fails goes to ⊤ and stays there
//!   (`fixpoint::assumptions`);
//! - no-wrap conditions are not proven where they arise, but at each launch, when the numbers are
//!   known. A launch that cannot prove one falls back to the whole allocation;
//! - the over-approximation is marked where it is exact: where conditions are sufficient and all
//!   bytes are touched. Only exit values and the conclusions about thread 0 at a wait rest on
//!   sufficient conditions;
//! - relations between values are kept as path conditions only: no polyhedra, no octagons.
//!
//! # Why it is sound
//!
//! The claim: in every launch, each byte of the program's global or constant memory that a thread
//! accesses lies in a [`Touched`] of the same base; or the kernel is marked as one that
//! [may touch anything](KernelAccess::may_touch_anything), or it is [too large](TooLarge) and has no
//! summary. Each stage over-approximates the one before:
//! - lowering: the steps may do all that the code does. An instruction that is not understood may
//!   touch everything that its operands point to and assigns opaque values; a branch to unknown
//!   places may go to every place;
//! - the fixpoint: a state holds for all threads that come to its place. A path condition is
//!   necessary for reaching the place, since a join keeps the conditions that its paths share. An
//!   edge is dropped only where two conditions on it contradict each other, under their no-wrap
//!   conditions. The result of the last pass rests only on assumptions that the pass confirmed; the
//!   number of passes is bounded, and a kernel that is not stable by then may touch anything;
//! - the summary: an access belongs to each base that its address may come from
//!   (`summary::conclude`);
//! - the launch: intervals hold all values of an expression whose no-wrap conditions are proven, a
//!   constraint set is implied by its path condition, and clipping drops only values that violate a
//!   constraint. The memo gives a launch the same answer as instantiation (`launch::plan`).
//!
//! The claim assumes that addresses are in-bounds uses of the pointer that they are made of: a base
//! plus an offset, where a product or an unpaired division of a pointer counts as no pointer.
//!
//! # Which file decides
//!
//! | question | file |
//! |---|---|
//! | whether a path condition is sufficient, so that an access under it certainly happens | `fixpoint/interpret.rs` (`exact`) |
//! | whether a register is an induction variable, with which step | `fixpoint/assumptions.rs` |
//! | the value of a register behind its loop | `fixpoint/exit_values.rs` |
//! | which pointer an address comes from | `summary/conclude/origins.rs` |
//! | whether a loop's range is exact: a loop with a single test whose bound every thread reaches | `launch/evaluator/trip_count.rs` (`full`) |
//! | whether arithmetic of a launch wraps | `launch/evaluator/no_wrap.rs` |
//! | whether the bytes of an access are all of its interval | `launch/strided/dimensions.rs` |
//! | whether another pointer gets the same answer | `launch/translation_bounds.rs` |
//!
//! # Deliberately absent
//!
//! - The contents of memory: a loaded value is opaque, except for the parameters, words of the
//!   stack frame at fixed places, and pointers in module globals, whose values the collector knows.
//! - Shared and local memory as places of accesses: no other kernel sees them.
//! - Floating point, and the order of threads, except where programmatic dependent launch needs it
//!   (`fixpoint::grid_control`).
//! - Recursion and calls through pointers: a kernel that has them may touch anything.

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
pub use streamsan_model::WordKind;
pub use summary::conclude::{analyse, analyse_code, analyse_kernel};
pub use summary::result::{
    Base, GlobalPointer, GlobalUse, KernelAccess, ParameterMode, PointerWord, SymbolicAccess, Touch,
};
