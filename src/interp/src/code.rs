//! Dense code: what a module is lowered to and the interpreter executes.
//!
//! Every operand is a slot of the thread's register frame. Literals, addresses of variables and
//! special registers have slots of their own, filled when a frame is made, so that no
//! instruction ever asks what kind of operand it has.

use crate::alu::{Convert, Fn1, Fn2, Fn3};

/// Index into a register frame.
pub(crate) type Slot = u32;
/// Where results nobody wants go.
pub(crate) const SINK: Slot = 0;
/// The frame's first byte of local memory, as a local-space address.
pub(crate) const LOCAL_BASE: Slot = 1;
/// First slot for anything else.
pub(crate) const FIRST_SLOT: Slot = 2;

/// Where an access goes. Constant memory is global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Global,
    Shared,
    Local,
    /// The parameter block of the kernel.
    Param,
    /// The workspace of a cooperative grid.
    Grid,
    /// The address tells.
    Generic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockKind {
    Clock,
    ClockHigh,
    GlobalTimer,
    GlobalTimerHigh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
}

/// An operation in which the threads of a warp meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarpKind {
    ShuffleUp,
    ShuffleDown,
    ShuffleButterfly,
    ShuffleIndex,
    VoteAll,
    VoteAny,
    VoteUniform,
    VoteBallot,
    MatchAny,
    MatchAll,
    Barrier,
    ActiveMask,
    Elect,
    ReduceAdd,
    ReduceMinUnsigned,
    ReduceMaxUnsigned,
    ReduceMinSigned,
    ReduceMaxSigned,
    ReduceAnd,
    ReduceOr,
    ReduceXor,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    Nop,
    /// `griddepcontrol.wait`.
    GridWait,
    Move {
        d: Slot,
        a: Slot,
    },
    Alu1 {
        f: Fn1,
        d: Slot,
        a: Slot,
    },
    Alu2 {
        f: Fn2,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Alu3 {
        f: Fn3,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// The hottest operations, without a call.
    Add32 {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Add64 {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Select {
        d: Slot,
        a: Slot,
        b: Slot,
        p: Slot,
    },
    InsertField {
        d: Slot,
        bits: u8,
        list: u32,
    },
    Logic3 {
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        table: Slot,
    },
    Convert {
        spec: Convert,
        d: Slot,
        a: Slot,
    },
    ConvertPair {
        spec: Convert,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// `count` values of `width` bits from the slots at `list` into one.
    Pack {
        d: Slot,
        list: u32,
        count: u8,
        width: u8,
    },
    Unpack {
        a: Slot,
        list: u32,
        count: u8,
        width: u8,
    },
    Load {
        place: Place,
        strong: bool,
        size: u8,
        d: Slot,
        a: Slot,
        offset: i32,
    },
    Store {
        place: Place,
        strong: bool,
        size: u8,
        v: Slot,
        a: Slot,
        offset: i32,
    },
    LoadVector {
        place: Place,
        strong: bool,
        size: u8,
        count: u8,
        list: u32,
        a: Slot,
        offset: i32,
    },
    StoreVector {
        place: Place,
        strong: bool,
        size: u8,
        count: u8,
        list: u32,
        a: Slot,
        offset: i32,
    },
    Atomic {
        f: Fn3,
        place: Place,
        strong: bool,
        size: u8,
        d: Slot,
        a: Slot,
        offset: i32,
        b: Slot,
        c: Slot,
    },
    /// Copies `size` bytes from global to shared memory, all but `valid` of them zero.
    CopyToShared {
        size: u8,
        to: Slot,
        to_offset: i32,
        from: Slot,
        from_offset: i32,
        valid: Slot,
    },
    Jump {
        target: u32,
    },
    BranchIf {
        p: Slot,
        negated: bool,
        target: u32,
    },
    /// Jumps to entry `a` of the `count` targets at `table`.
    BranchTable {
        a: Slot,
        table: u32,
        count: u32,
    },
    Call {
        site: u32,
    },
    Return,
    Exit,
    Trap,
    /// Stands for an instruction the interpreter lacks: entry of `Code::lacking`.
    Lacking {
        what: u32,
    },
    Clock {
        kind: ClockKind,
        d: Slot,
    },
    Sleep {
        a: Slot,
    },
    Barrier {
        kind: BarrierKind,
        id: Slot,
        count: Option<Slot>,
        d: Slot,
        p: Slot,
    },
    Warp {
        kind: WarpKind,
        d: Slot,
        p: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        mask: Option<Slot>,
    },
}

/// A value known when a frame is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Bits(u64),
    /// Address of a global, plus an offset.
    Global(u32, i64),
    /// Shared-space address of a shared variable, plus an offset.
    Shared(u32, i64),
    /// Code address.
    Function(u32),
    DynamicSharedSize,
    TotalSharedSize,
    /// Upper half of the address of the grid's workspace; 0 if the launch is not cooperative.
    GridWorkspace,
}

/// A special register that a thread keeps for life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Lane,
    Warp,
    WarpCount,
    MaskEqual,
    MaskLess,
    MaskLessEqual,
    MaskGreater,
    MaskGreaterEqual,
}

/// Where an argument, parameter or result lies in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentPlace {
    Slot(Slot),
    /// Local memory, from the frame's base.
    Memory {
        offset: u32,
        size: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    Function(u32),
    Pointer(Slot),
    /// `__assertfail`: message, file, line, function.
    AssertFail,
    /// `vprintf`: format and packed arguments.
    Printf,
}

#[derive(Debug, Clone)]
pub(crate) struct CallSite {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<ArgumentPlace>,
    pub(crate) results: Vec<ArgumentPlace>,
}

/// A lowered function.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// Line in the PTX text of each of `ops`.
    pub(crate) lines: Vec<u32>,
    /// Slots of a frame.
    pub(crate) slots: u32,
    pub(crate) constants: Vec<(Slot, Constant)>,
    pub(crate) specials: Vec<(Slot, Special)>,
    /// Bytes of local memory, a multiple of 16.
    pub(crate) local: u32,
    pub(crate) parameters: Vec<ArgumentPlace>,
    pub(crate) results: Vec<ArgumentPlace>,
    pub(crate) lists: Vec<Slot>,
    pub(crate) targets: Vec<u32>,
    pub(crate) calls: Vec<CallSite>,
    /// Instructions that the interpreter lacks, with their lines.
    pub(crate) lacking: Vec<(String, u32)>,
    /// Declared 32-bit registers.
    pub(crate) registers: u32,
    /// Whether it waits for the launches that this one depends on.
    pub(crate) grid_wait: bool,
}

/// A kernel's code and everything it can reach.
#[derive(Debug, Clone)]
pub(crate) struct KernelCode {
    pub(crate) function: u32,
    /// Functions it can call, itself included; the first `certain` of them without a pointer.
    pub(crate) reachable: Vec<u32>,
    pub(crate) certain: usize,
    /// Shared variables it can touch, with their offsets.
    pub(crate) shared: Vec<(u32, u32)>,
    /// Where dynamic shared memory starts.
    pub(crate) static_shared: u32,
}
