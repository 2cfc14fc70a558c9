//! Where CPython's structures keep what is read, for each version: offsets in bytes.
//!
//! The facts are those of CPython's headers of 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0 and 3.14.10,
//! as a C compiler for 64-bit machines lays them out (the same for x86-64 and aarch64); within a
//! minor version they do not change once it is released. From 3.13 on the interpreter tells most
//! of them itself (`_Py_DebugOffsets`): what it tells must agree.

use super::lines::LineTable;

/// How the chain of frames is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frames {
    /// 3.9 and 3.10: `PyFrameObject`s; each has a call of the evaluation function of its own.
    Objects {
        /// 3.10: `PyThreadState.cframe`, the innermost of the `CFrame`s, one in the C frame of each
        /// call of the evaluation function; and `CFrame.previous`.
        c_frames: Option<(usize, usize)>,
    },
    /// 3.11: `_PyInterpreterFrame`s that say whether a call of the evaluation function starts
    /// with them (`is_entry`, its offset); `_PyCFrame.previous` leads through those calls.
    Flagged { is_entry: usize, c_frame_previous: usize },
    /// 3.12 and later: a frame without code, in the C frame of each call of the evaluation
    /// function, ends that call's part of the chain.
    Delimited,
}

/// Offsets for one minor version.
#[derive(Debug, Clone, Copy)]
pub(super) struct PythonLayout {
    pub(super) minor: u8,
    pub(super) frames: Frames,
    /// `PyThreadState`: from it to the innermost frame, one or two steps.
    pub(super) to_frame: &'static [usize],
    /// `PyFrameObject` or `_PyInterpreterFrame`.
    pub(super) previous: usize,
    pub(super) code: usize,
    /// In 3.9 and 3.10 an index (`f_lasti`), later a pointer (`prev_instr`, `instr_ptr`).
    pub(super) instruction: usize,
    /// Bytes that 1 stands for in an index.
    pub(super) index_unit: i32,
    /// From 3.11 on: who owns the frame.
    pub(super) owner: usize,
    /// `PyCodeObject`.
    pub(super) first_line: usize,
    pub(super) file: usize,
    pub(super) name: usize,
    /// The name to show: `co_qualname`, before 3.11 `co_name`.
    pub(super) shown_name: usize,
    pub(super) line_table: usize,
    /// From 3.11 on: `_co_firsttraceable`, in code units, and `co_code_adaptive`.
    pub(super) first_traceable: usize,
    pub(super) bytecode: usize,
    pub(super) lines: LineTable,
    /// Sizes of `PyASCIIObject` and `PyCompactUnicodeObject`: where their characters are.
    pub(super) ascii: usize,
    pub(super) compact: usize,
    pub(super) told: Option<&'static Told>,
}

/// `PyObject.ob_type`.
pub(super) const TYPE: usize = 8;
/// `PyVarObject.ob_size`; `PyASCIIObject.length`.
pub(super) const SIZE: usize = 16;
/// `PyBytesObject.ob_sval`.
pub(super) const BYTES: usize = 32;
/// `PyASCIIObject.state`, and its bit fields.
pub(super) const STATE: usize = 32;
pub(super) const STATE_KIND_SHIFT: u32 = 2;
pub(super) const STATE_COMPACT: u32 = 0x20;
pub(super) const STATE_ASCII: u32 = 0x40;

/// `_frameowner`: a frame of a generator or coroutine.
pub(super) const OWNED_BY_GENERATOR: u8 = 1;
/// A frame without code of 3.12 and later: `FRAME_OWNED_BY_CSTACK`, from 3.14 on
/// `FRAME_OWNED_BY_INTERPRETER`; everything from here on has no code.
pub(super) const OWNED_BY_INTERPRETER: u8 = 3;

/// Where `_Py_DebugOffsets`, at the start of `_PyRuntime`, has the offsets used here.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) current_frame: usize,
    pub(super) previous: usize,
    pub(super) code: usize,
    pub(super) instruction: usize,
    pub(super) owner: usize,
    pub(super) file: usize,
    pub(super) name: usize,
    pub(super) qualified_name: usize,
    pub(super) line_table: usize,
    pub(super) first_line: usize,
    pub(super) bytecode: usize,
    pub(super) object_type: usize,
    pub(super) bytes_size: usize,
    pub(super) bytes: usize,
    pub(super) text_state: usize,
    pub(super) text_length: usize,
    pub(super) text_ascii_size: usize,
}

/// Its first fields: the cookie, the version, whether the build is free-threaded.
pub(super) const TOLD_COOKIE: [u8; 8] = *b"xdebugpy";
pub(super) const TOLD_VERSION: usize = 8;
pub(super) const TOLD_FREE_THREADED: usize = 16;

const V3_9: PythonLayout = PythonLayout {
    minor: 9,
    frames: Frames::Objects { c_frames: None },
    to_frame: &[24],
    previous: 24,
    code: 32,
    instruction: 104,
    index_unit: 1,
    owner: 0,
    first_line: 40,
    file: 104,
    name: 112,
    shown_name: 112,
    line_table: 120,
    first_traceable: 0,
    bytecode: 0,
    lines: LineTable::Increments,
    ascii: 48,
    compact: 72,
    told: None,
};

const V3_10: PythonLayout = PythonLayout {
    minor: 10,
    frames: Frames::Objects { c_frames: Some((48, 8)) },
    instruction: 96,
    index_unit: 2,
    lines: LineTable::Ranges,
    ..V3_9
};

const V3_11: PythonLayout = PythonLayout {
    minor: 11,
    frames: Frames::Flagged { is_entry: 68, c_frame_previous: 16 },
    to_frame: &[56, 8],
    previous: 48,
    code: 32,
    instruction: 56,
    index_unit: 0,
    owner: 69,
    first_line: 72,
    file: 112,
    name: 120,
    shown_name: 128,
    line_table: 136,
    first_traceable: 168,
    bytecode: 184,
    lines: LineTable::Locations,
    ascii: 48,
    compact: 72,
    told: None,
};

const V3_12: PythonLayout = PythonLayout {
    minor: 12,
    frames: Frames::Delimited,
    to_frame: &[56, 0],
    previous: 8,
    code: 0,
    owner: 70,
    first_line: 68,
    first_traceable: 176,
    bytecode: 192,
    ascii: 40,
    compact: 56,
    ..V3_11
};

const V3_13: PythonLayout = PythonLayout {
    minor: 13,
    to_frame: &[72],
    first_traceable: 184,
    bytecode: 200,
    told: Some(&Told {
        current_frame: 184,
        previous: 232,
        code: 240,
        instruction: 248,
        owner: 264,
        file: 280,
        name: 288,
        qualified_name: 296,
        line_table: 304,
        first_line: 312,
        bytecode: 344,
        object_type: 360,
        bytes_size: 520,
        bytes: 528,
        text_state: 544,
        text_length: 552,
        text_ascii_size: 560,
    }),
    ..V3_12
};

const V3_14: PythonLayout = PythonLayout {
    minor: 14,
    owner: 74,
    first_traceable: 192,
    bytecode: 208,
    told: Some(&Told {
        current_frame: 208,
        previous: 256,
        code: 264,
        instruction: 272,
        owner: 288,
        file: 320,
        name: 328,
        qualified_name: 336,
        line_table: 344,
        first_line: 352,
        bytecode: 384,
        object_type: 408,
        bytes_size: 600,
        bytes: 608,
        text_state: 624,
        text_length: 632,
        text_ascii_size: 640,
    }),
    ..V3_13
};

/// The layouts of all versions that are understood.
pub(super) static LAYOUTS: [PythonLayout; 6] = [V3_9, V3_10, V3_11, V3_12, V3_13, V3_14];

impl PythonLayout {
    /// Whether the interpreter's own account of its structures, read by `told` from a field of
    /// `_Py_DebugOffsets`, is this one.
    pub(super) fn agrees(&self, told: impl Fn(usize) -> u64) -> bool {
        let Some(at) = self.told else { return true };
        [
            (at.current_frame, self.to_frame[0]),
            (at.previous, self.previous),
            (at.code, self.code),
            (at.instruction, self.instruction),
            (at.owner, self.owner),
            (at.file, self.file),
            (at.name, self.name),
            (at.qualified_name, self.shown_name),
            (at.line_table, self.line_table),
            (at.first_line, self.first_line),
            (at.bytecode, self.bytecode),
            (at.object_type, TYPE),
            (at.bytes_size, SIZE),
            (at.bytes, BYTES),
            (at.text_state, STATE),
            (at.text_length, SIZE),
            (at.text_ascii_size, self.ascii),
        ]
        .iter()
        .all(|(field, expected)| told(*field) == *expected as u64)
    }
}
