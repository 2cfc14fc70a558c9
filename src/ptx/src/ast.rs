//! The syntax tree of a PTX module.

use crate::types::Type;

/// A parsed PTX module.
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// `.version`: major and minor.
    pub version: (u32, u32),
    /// `.target`: `sm_70` and its options, in order.
    pub target: Vec<String>,
    /// `.address_size` in bits; 64 where the module says nothing.
    pub address_size: u32,
    /// Module-scope variables, in order.
    pub globals: Vec<Variable>,
    /// Functions and entries, declarations included, in order.
    pub functions: Vec<Function>,
}

/// Linking directive in front of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    /// None: visible in this module only.
    Internal,
    Visible,
    Extern,
    Weak,
    Common,
}

/// State space of a variable or a memory instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Register,
    Global,
    Shared,
    Local,
    Param,
    Const,
    /// Texture references of old PTX.
    Texture,
}

impl Space {
    /// The space named by a directive or modifier without its dot.
    pub fn from_name(name: &str) -> Option<Space> {
        Some(match name {
            "reg" => Space::Register,
            "global" => Space::Global,
            "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
            "local" => Space::Local,
            "param" | "param::entry" | "param::func" => Space::Param,
            "const" => Space::Const,
            "tex" => Space::Texture,
            _ => return None,
        })
    }
}

/// A variable declaration in any space but registers.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub name: String,
    pub space: Space,
    pub linkage: Linkage,
    pub ty: Type,
    /// Elements of the vector type: 1, 2, 4 or 8.
    pub vector: u32,
    /// Alignment in bytes: as declared, else the natural one.
    pub align: u32,
    /// Array dimensions; an unsized first dimension (`name[]`) is `None`.
    pub dims: Vec<Option<u64>>,
    pub init: Option<Initializer>,
    /// Line of the declaration, counted from 1.
    pub line: u32,
}

impl Variable {
    /// Size in bytes. An unsized array takes its size from its initialiser, else it is 0.
    pub fn size(&self) -> u64 {
        let element = u64::from(self.ty.size()) * u64::from(self.vector);
        let mut count = 1u64;
        for (at, dim) in self.dims.iter().enumerate() {
            count = count.saturating_mul(match (dim, &self.init) {
                (Some(n), _) => *n,
                (None, Some(Initializer::List(items))) if at == 0 => items.len() as u64,
                (None, _) => 0,
            });
        }
        element.saturating_mul(count)
    }
}

/// Initial value of a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Initializer {
    List(Vec<Initializer>),
    Value(Immediate),
    /// Address of a variable or function, plus an offset; `generic(x)` is marked.
    Symbol {
        name: String,
        offset: i64,
        generic: bool,
    },
}

/// A `.func` or `.entry`.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    pub name: String,
    pub is_entry: bool,
    pub linkage: Linkage,
    /// Return parameters; empty for an entry.
    pub returns: Vec<Param>,
    pub params: Vec<Param>,
    /// Bytes of the parameter block: the end of the last parameter.
    pub params_size: u32,
    /// `.maxntid` or `.reqntid`, missing dimensions as 1.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid` rather than `.maxntid`.
    pub required_threads: bool,
    /// Performance directives as written, without their dots, `maxntid` included.
    pub directives: Vec<(String, Vec<u64>)>,
    /// `None` for a declaration.
    pub body: Option<Body>,
    pub line: u32,
}

/// A formal parameter. Offsets follow the driver: each parameter at its alignment.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    pub name: String,
    /// `.reg` parameters of old-style functions have `Space::Register`.
    pub space: Space,
    pub ty: Type,
    /// Bytes; arrays (structs by value) included.
    pub size: u32,
    pub align: u32,
    /// Offset in the parameter block, in bytes.
    pub offset: u32,
    /// `.ptr` attribute of a kernel parameter, if written.
    pub pointer: Option<PointerAttribute>,
    pub line: u32,
}

/// `.ptr{.space}{.align n}` on a kernel parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerAttribute {
    /// `None`: generic.
    pub space: Option<Space>,
    /// Bytes; 4 where nothing is written.
    pub align: u32,
}

/// The statements of a function, nested blocks kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    pub statements: Vec<Statement>,
    /// Line of the closing brace.
    pub end_line: u32,
}

/// One statement with the line it starts on.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub line: u32,
    pub kind: StatementKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    Label(String),
    Instruction(Instruction),
    Registers(Registers),
    Variable(Variable),
    Block(Vec<Statement>),
    /// `name: .branchtargets a, b;`
    BranchTargets {
        name: String,
        labels: Vec<String>,
    },
    /// `name: .calltargets f, g;`
    CallTargets {
        name: String,
        functions: Vec<String>,
    },
    /// `name: .callprototype (ret) _ (params);`
    CallPrototype {
        name: String,
        returns: Vec<Param>,
        params: Vec<Param>,
    },
    /// `.loc file line column`: the source line of what follows.
    Location {
        file: u32,
        line: u32,
        column: u32,
    },
    /// `.pragma` strings, kept as written.
    Pragma(Vec<String>),
}

/// `.reg .b32 %r<10>;` gives one of these a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Registers {
    pub ty: Type,
    /// Elements of a vector register: 1, 2 or 4.
    pub vector: u32,
    pub name: String,
    /// `Some(n)`: the family `name0` to `name{n-1}`.
    pub count: Option<u32>,
}

/// `@p` or `@!p`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    pub predicate: String,
    pub negated: bool,
}

/// One instruction as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    pub guard: Option<Guard>,
    /// The word before the first dot.
    pub opcode: String,
    /// The words behind the dots, in order, without the dots.
    pub modifiers: Vec<String>,
    pub operands: Vec<Operand>,
    pub line: u32,
    pub column: u32,
}

impl Instruction {
    /// Opcode and modifiers as written: `ld.global.f32`.
    pub fn full_name(&self) -> String {
        let mut name = self.opcode.clone();
        for modifier in &self.modifiers {
            name.push('.');
            name.push_str(modifier);
        }
        name
    }

    /// Whether `modifier` (without its dot) is written.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().any(|m| m == modifier)
    }
}

/// A literal. Float literals keep their exact bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Immediate {
    /// Integer constants are 64-bit in PTX; the bits, sign included.
    Int(i64),
    /// `0f` and eight hexadecimal digits: bits of a single.
    F32(u32),
    /// `0d` and sixteen hexadecimal digits, or a decimal literal: bits of a double.
    F64(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// Register, special register (`%tid.x`, dots included), vector component, symbol or label.
    Name(String),
    /// `_`: the result is thrown away.
    Sink,
    Immediate(Immediate),
    /// `symbol+4` outside brackets.
    SymbolOffset(String, i64),
    /// `[base+offset]`.
    Address(Address),
    /// `{a, b}`.
    Vector(Vec<Operand>),
    /// `d|p`.
    Pair(Box<Operand>, Box<Operand>),
    /// `!p`.
    Not(Box<Operand>),
    /// `(a, b)`: arguments and results of a call.
    Group(Vec<Operand>),
}

/// `[base+offset]`, or `[base, {coordinates}]` of a texture access.
#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    pub base: AddressBase,
    pub offset: i64,
    /// The operands behind a comma inside the brackets (textures, tensor maps).
    pub rest: Vec<Operand>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressBase {
    /// Register or symbol.
    Name(String),
    /// A literal address (its value is in the offset).
    Absolute,
}
