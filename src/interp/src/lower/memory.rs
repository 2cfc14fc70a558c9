//! Loads, stores, atomics and address conversion.

use streamsan_ptx::{Operand, Space, Type};

use super::form::{Form, Lowered, Problem, invalid, known};
use super::function::FunctionLowering;
use super::operand::Location;
use crate::alu;
use crate::code::{Op, Place, SINK, Slot};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE};

/// Ordering, scope and cache modifiers: every access is sequentially consistent and uncached.
const HINTS: &[&str] = &[
    "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "seq_cst", "mmio", "cta",
    "cluster", "gpu", "sys", "gl", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified",
    "noftz",
];

fn is_hint(word: &str) -> bool {
    HINTS.contains(&word) || word.starts_with("L1::") || word.starts_with("L2::")
}

/// Whether `ld`, `st`, `atom` or `red` performs strong operations whose scope is the system: `.volatile`
/// is like `.relaxed.sys`, and so is `.mmio`; without a scope `atom` and `red` have `.gpu` (PTX ISA).
fn is_strong_at_system_scope(form: &Form<'_>) -> bool {
    let is_strong = matches!(form.opcode(), "atom" | "red")
        || ["relaxed", "acquire", "release"].iter().any(|word| form.has(word));
    is_strong && form.has("sys") || form.has("volatile") || form.has("mmio")
}

/// The vector length and place that the modifiers of a memory instruction name.
fn shape(form: &Form<'_>) -> Lowered<(u8, Option<Space>)> {
    let (mut count, mut space) = (1, None);
    for word in &form.words {
        match *word {
            "v2" => count = 2,
            "v4" => count = 4,
            "v8" => count = 8,
            _ if is_hint(word) => {}
            _ => match Space::from_name(word) {
                Some(found) => space = Some(found),
                None => return Err(Problem::Unsupported),
            },
        }
    }
    Ok((count, space))
}

fn access_size(ty: Type) -> Lowered<u8> {
    match ty {
        Type::Pred | Type::B128 => Err(Problem::Unsupported),
        _ => Ok(ty.size() as u8),
    }
}

impl FunctionLowering<'_, '_> {
    /// The place of an access: what its symbol is, else what the instruction says.
    fn place(&self, location: &Location, space: Option<Space>) -> Lowered<Place> {
        if let Some(place) = location.place {
            return Ok(place);
        }
        Ok(match space {
            None => Place::Generic,
            Some(Space::Global | Space::Const) => Place::Global,
            Some(Space::Shared) => Place::Shared,
            Some(Space::Local) => Place::Local,
            Some(Space::Param) if self.is_entry => Place::Param,
            Some(Space::Param) => Place::Local,
            Some(Space::Register | Space::Texture) => return Err(Problem::Unsupported),
        })
    }

    pub(super) fn load(&mut self, form: &Form<'_>) -> Lowered<()> {
        let (count, space) = shape(form)?;
        let ty = form.ty(0)?;
        let size = access_size(ty)?;
        let location = self.address(form.operand(1)?)?;
        let place = self.place(&location, space)?;
        let strong = is_strong_at_system_scope(form);
        let Location { base: a, offset, .. } = location;
        let mut extend = Vec::new();
        let mut slots = Vec::new();
        let items: &[Operand] = match form.operand(0)? {
            Operand::Vector(items) => items,
            single => std::slice::from_ref(single),
        };
        if items.len() != usize::from(count) {
            return invalid("the number of registers does not fit the vector");
        }
        for item in items {
            let (slot, width) = self.sized_destination(item)?;
            slots.push(slot);
            if let Some(f) = alu::sign_extend(ty, width).filter(|_| ty.is_signed()) {
                extend.push((f, slot));
            }
        }
        if count == 1 {
            self.push(Op::Load { place, strong, size, d: slots[0], a, offset });
        } else {
            let list = self.list(&slots);
            self.push(Op::LoadVector { place, strong, size, count, list, a, offset });
        }
        for (f, d) in extend {
            self.push(Op::Alu1 { f, d, a: d });
        }
        Ok(())
    }

    pub(super) fn store(&mut self, form: &Form<'_>) -> Lowered<()> {
        let (count, space) = shape(form)?;
        let ty = form.ty(0)?;
        let size = access_size(ty)?;
        let location = self.address(form.operand(0)?)?;
        let place = self.place(&location, space)?;
        let strong = is_strong_at_system_scope(form);
        let Location { base: a, offset, .. } = location;
        let items: &[Operand] = match form.operand(1)? {
            Operand::Vector(items) => items,
            single => std::slice::from_ref(single),
        };
        if items.len() != usize::from(count) {
            return invalid("the number of registers does not fit the vector");
        }
        let mut slots = Vec::new();
        for item in items {
            slots.push(self.source(item, ty)?);
        }
        if count == 1 {
            self.push(Op::Store { place, strong, size, v: slots[0], a, offset });
        } else {
            let list = self.list(&slots);
            self.push(Op::StoreVector { place, strong, size, count, list, a, offset });
        }
        Ok(())
    }

    pub(super) fn atomic(&mut self, form: &Form<'_>) -> Lowered<()> {
        let ty = form.ty(0)?;
        let mut space = None;
        let mut operation = None;
        for word in &form.words {
            match *word {
                "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "cas" | "inc" | "dec" => {
                    operation = Some(*word);
                }
                _ if is_hint(word) => {}
                _ => space = Some(known(Space::from_name(word))?),
            }
        }
        let operation = known(operation)?;
        let f = known(match operation {
            "add" if ty.is_float() => alu::atomic_add(ty),
            _ => alu::atomic(operation, ty),
        })?;
        // `red` has no destination.
        let (d, first) = match form.opcode() {
            "red" => (SINK, 0),
            _ => (self.destination(form.operand(0)?)?, 1),
        };
        let location = self.address(form.operand(first)?)?;
        let place = self.place(&location, space)?;
        let strong = is_strong_at_system_scope(form);
        let b = self.source(form.operand(first + 1)?, ty)?;
        let c = match operation {
            "cas" => self.source(form.operand(first + 2)?, ty)?,
            _ => SINK,
        };
        let (size, Location { base: a, offset, .. }) = (access_size(ty)?, location);
        self.push(Op::Atomic { f, place, strong, size, d, a, offset, b, c });
        Ok(())
    }

    pub(super) fn cvta(&mut self, form: &Form<'_>) -> Lowered<()> {
        let mut space = None;
        for word in &form.words {
            if *word != "to" {
                space = Some(known(Space::from_name(word))?);
            }
        }
        let window = match known(space)? {
            Space::Shared => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            Space::Param => PARAM_WINDOW,
            Space::Global | Space::Const => 0,
            Space::Register | Space::Texture => return Err(Problem::Unsupported),
        };
        let a = self.source(form.operand(1)?, form.ty(0)?)?;
        let d = self.destination(form.operand(0)?)?;
        if window == 0 {
            self.push(Op::Move { d, a });
        } else {
            let delta = if form.has("to") { window.wrapping_neg() } else { window };
            let b = self.bits(delta);
            self.push(Op::Add64 { d, a, b });
        }
        Ok(())
    }

    pub(super) fn isspacep(&mut self, form: &Form<'_>) -> Lowered<()> {
        let f: fn(u64) -> u64 = match form.words[..] {
            ["shared" | "shared::cta" | "shared::cluster"] => {
                |a| u64::from(a.wrapping_sub(SHARED_WINDOW) < WINDOW_SIZE)
            }
            ["local"] => |a| u64::from(a.wrapping_sub(LOCAL_WINDOW) < WINDOW_SIZE),
            ["param" | "param::entry"] => |a| u64::from(a.wrapping_sub(PARAM_WINDOW) < WINDOW_SIZE),
            ["global"] => |a| u64::from(a < SHARED_WINDOW),
            // Constant variables lie in global memory here.
            ["const"] => |_| 0,
            _ => return Err(Problem::Unsupported),
        };
        let a = self.source(form.operand(1)?, Type::U64)?;
        let d = self.destination(form.operand(0)?)?;
        self.push(Op::Alu1 { f, d, a });
        Ok(())
    }

    /// `cp.async` copies at once, which is one of the moments it may choose.
    pub(super) fn copy_async(&mut self, form: &Form<'_>) -> Lowered<()> {
        match form.words[..] {
            ["async", "commit_group" | "wait_group" | "wait_all"] => {
                self.push(Op::Nop);
                return Ok(());
            }
            ["async", "ca" | "cg", to, "global", ref hints @ ..]
                if Space::from_name(to) == Some(Space::Shared)
                    && hints.iter().all(|hint| is_hint(hint)) => {}
            _ => return Err(Problem::Unsupported),
        }
        let to = self.address(form.operand(0)?)?;
        let from = self.address(form.operand(1)?)?;
        let size = match form.operand(2)? {
            Operand::Immediate(streamsan_ptx::Immediate::Int(size @ (4 | 8 | 16))) => *size as u8,
            _ => return invalid("the size must be 4, 8 or 16"),
        };
        form.at_most(4)?;
        let valid: Slot = match form.instruction.operands.get(3) {
            Some(operand) => self.source(operand, Type::U32)?,
            None => self.bits(u64::from(size)),
        };
        self.push(Op::CopyToShared {
            size,
            to: to.base,
            to_offset: to.offset,
            from: from.base,
            from_offset: from.offset,
            valid,
        });
        Ok(())
    }
}
