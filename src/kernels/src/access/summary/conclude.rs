//! From the raw accesses of the fixpoint to the summary of the kernel: every access gets the base
//! that its address is relative to.
//!
//! Stage: the summary; also the entry points of the analysis. The base of an address is a word of
//! the parameters, a module variable, or a pointer in a module global. Where the address does not
//! show it, every word and variable that the address's symbols were made of is a base.
//!
//! Invariant: an access is never dropped because its base is not known. The access belongs to each
//! base that it may have. If there is none, and the address comes from no word of the driver, the
//! kernel may touch anything, and the reason is kept.

mod gated_phis;
mod module_pointers;
mod origins;
mod pointer_tables;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::repeat;

use rustc_hash::{FxHashMap, FxHashSet as HashSet};

use crate::access::domain::budget::TooLarge;
use crate::access::domain::condition::{Condition, Implied, Relation};
use crate::access::domain::expression::{
    ExprId, Interner, MINUS_ONE, NoWrap, Operator, Provenance, Symbol, SymbolId,
};
use crate::access::fixpoint::grid_control::Waited;
use crate::access::fixpoint::interpret::{Definition, Interpreter, Kind};
use crate::access::lower::ptx::effects::{Raw, Size};
use crate::access::lower::ptx::flatten;
use crate::access::lower::sass;
use crate::access::summary::prune::prune;
use crate::access::summary::result::{
    Base, GatedPhi, GlobalPointer, GlobalUse, KernelAccess, Length, LoopBound, ParameterMode,
    PointerWord, SymbolicAccess, Touch,
};
use crate::ptx::{self, Module, Space};
use crate::sass::Code;
use module_pointers::{ModulePointer, ModulePointerUse};
use origins::{Origins, Seen};
use streamsan_model::{FOLLOWS_POINTERS, WordKind};

/// Inputs of the φs of one address that are followed one by one.
const MAX_INPUTS: usize = 24;
/// And of all addresses of a kernel.
const MAX_CASES: usize = 600;
/// Addresses below this are never mapped: an access there is an error that ends the program.
const NULL_PAGE: i64 = 4096;

/// The summary of each kernel of a module; kernels that are too large are left out.
pub fn analyse(module: &Module) -> Vec<KernelAccess> {
    let with_body = |f: &&ptx::Function| f.is_entry && f.body.is_some();
    module
        .functions
        .iter()
        .filter(with_body)
        .filter_map(|f| analyse_kernel(module, &f.name)?.ok())
        .collect()
}

/// Concludes what the kernel `name` touches; `None` where the module has no body for it.
///
/// # Errors
/// When the kernel is too large.
pub fn analyse_kernel(module: &Module, name: &str) -> Option<Result<KernelAccess, TooLarge>> {
    let entry =
        module.functions.iter().find(|f| f.is_entry && f.name == name && f.body.is_some())?;
    let names: Vec<&str> = module
        .globals
        .iter()
        .filter(|v| matches!(v.space, Space::Global | Space::Const | Space::Texture))
        .map(|v| v.name.as_str())
        .collect();
    let numbers: HashMap<&str, u32> =
        names.iter().enumerate().map(|(at, &name)| (name, at as u32)).collect();
    let flat = flatten::flatten(module, entry, entry.body.as_ref()?, &numbers);
    let mut interpreter = match Interpreter::new(flat) {
        Ok(interpreter) => interpreter,
        Err(too_large) => return Some(Err(too_large)),
    };
    interpreter.params_size = entry.params_size;
    // They are laid out one behind the other.
    let sized: Vec<_> = entry.params.iter().filter(|p| p.size > 0).collect();
    interpreter.param_ends = (0..entry.params_size)
        .step_by(8)
        .map(|at| {
            let before = sized[..sized.partition_point(|p| p.offset <= at)].last();
            let end = before.map(|p| p.offset + p.size).filter(|&end| end > at);
            end.unwrap_or(entry.params_size)
        })
        .collect();
    for param in &entry.params {
        if param.pointer.is_some() {
            interpreter.pointers.insert(param.offset);
        }
    }
    let about = About {
        name: entry.name.clone(),
        params_size: entry.params_size,
        params: entry.params.iter().map(|p| p.offset).collect(),
        globals: names.iter().map(|&name| name.to_owned()).collect(),
    };
    Some(conclude(interpreter, about))
}

/// Concludes what a kernel in machine code touches.
///
/// # Errors
/// When the kernel is too large.
pub fn analyse_code(code: &Code) -> Result<KernelAccess, TooLarge> {
    let lifted = sass::lift(code);
    let mut interpreter = Interpreter::new(lifted.flat)?;
    interpreter.params_size = code.parameters.size;
    interpreter.param_ends = lifted.param_ends;
    interpreter.constants = lifted.constants;
    let about = About {
        name: code.entry.name.clone(),
        params_size: code.parameters.size,
        params: code.parameters.parameters.iter().map(|p| p.offset).collect(),
        globals: lifted.globals,
    };
    conclude(interpreter, about)
}

/// The parts of a result beside accesses.
struct About {
    name: String,
    params_size: u32,
    /// Offset of each parameter in the block.
    params: Vec<u32>,
    /// Names of variables.
    globals: Vec<String>,
}

fn conclude(mut interpreter: Interpreter<'_>, about: About) -> Result<KernelAccess, TooLarge> {
    let done = interpreter.run()?;
    let mut summary = Summary {
        interpreter,
        words: BTreeMap::new(),
        globals: BTreeMap::new(),
        module_pointers: BTreeMap::new(),
        accesses: BTreeSet::new(),
        unknown: BTreeSet::new(),
        followed: BTreeSet::new(),
        substituted: FxHashMap::default(),
        tables: HashMap::new(),
    };
    if !done {
        summary.unknown.insert("the loops of the kernel are not understood".to_owned());
    }
    summary.all()?;
    summary.withdraw_changed_pointers();
    Ok(summary.finish(about))
}

/// A base before it has a number in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum AccessBase {
    Word(u32, WordKind),
    Global(u32),
    ModulePointer(ModulePointer),
}

/// The accesses to the memory of one base.
#[derive(Debug, Default, Clone)]
struct Use {
    mode: Option<ParameterMode>,
    table: bool,
}

impl Use {
    fn add(&mut self, touch: Touch) {
        self.mode = Some(self.mode.unwrap_or(ParameterMode::None).and(touch));
    }
}

/// The summary of a kernel while it is made.
#[derive(Debug)]
struct Summary<'m> {
    interpreter: Interpreter<'m>,
    words: BTreeMap<(u32, WordKind), Use>,
    globals: BTreeMap<u32, Use>,
    /// The pointers in module globals, and the accesses through them.
    module_pointers: BTreeMap<ModulePointer, ModulePointerUse>,
    /// Each with the address that the instruction has, φs not split.
    accesses: BTreeSet<(AccessBase, ExprId, SymbolicAccess)>,
    unknown: BTreeSet<String>,
    /// Places where pointers that were loaded are used.
    followed: BTreeSet<String>,
    /// Expressions in which a φ is replaced by one of its inputs.
    substituted: FxHashMap<(SymbolId, ExprId), FxHashMap<ExprId, Option<ExprId>>>,
    /// Addresses that pointers are loaded from, whose bases are marked: whether there are any, and
    /// the addresses that their own pointers are loaded from.
    tables: HashMap<ExprId, (bool, Vec<ExprId>)>,
}

impl Summary<'_> {
    fn all(&mut self) -> Result<(), TooLarge> {
        let mut raws = std::mem::take(&mut self.interpreter.effects.accesses);
        raws.retain(|raw| !raw.path.iter().any(|condition| self.is_contradiction(condition)));
        self.unknown.append(&mut self.interpreter.effects.unknown);
        // A word that alone is the base somewhere is a pointer everywhere.
        for raw in &raws {
            let words = self.direct(raw.address).words;
            let alone = self.others(raw.address).is_empty();
            if let (1, true, Some(&word)) = (words.len(), alone, words.first()) {
                self.interpreter.pointers.insert(word);
            }
        }
        let mut left = MAX_CASES;
        for raw in raws {
            self.interpreter.interner.budget.check()?;
            match self.split(&raw, MAX_INPUTS.min(left)) {
                Some(mut cases) => {
                    self.one_of_several(&mut cases);
                    left -= if cases.len() > 1 { cases.len().min(left) } else { 0 };
                    cases.into_iter().for_each(|case| self.access(case));
                }
                _ => self.escaped(&raw),
            }
        }
        Ok(())
    }

    /// Where the instruction stands, for people.
    fn line(&self, raw: &Raw) -> String {
        let step = &self.interpreter.flat.steps[raw.step];
        match (step.instruction, &step.machine) {
            (Some(instruction), _) => format!("line {}", instruction.line),
            (None, Some(lifted)) => format!("at {:#06x}", lifted.place),
            (None, None) => String::new(),
        }
    }

    fn access(&mut self, raw: Raw) {
        if self.interpreter.interner.provenance(raw.address) & Provenance::WINDOW != 0 {
            return;
        }
        // One of several pointers is often null, where nothing is to be done. Nothing lies there.
        let null =
            self.number(raw.address).is_some_and(|address| (0..NULL_PAGE).contains(&address));
        if null && raw.kind == WordKind::Pointer {
            return;
        }
        if let Some(offset) = self.param_address(raw.address) {
            let inside = (offset as usize / 8) < self.interpreter.param_ends.len();
            if raw.kind == WordKind::TensorMap && inside {
                self.record(AccessBase::Word(offset, raw.kind), &raw, false);
            } else if raw.kind == WordKind::TensorMap {
                self.drivers_map(&raw);
            }
            return;
        }
        let shown = self.direct(raw.address);
        if let Some(&global) = shown.globals.first() {
            if raw.kind == WordKind::TensorMap {
                self.loaded_map(&raw);
            }
            self.record(AccessBase::Global(global), &raw, raw.kind == WordKind::Pointer);
            return;
        }
        let others = self.others(raw.address);
        let known: Vec<u32> = shown
            .words
            .iter()
            .copied()
            .filter(|word| self.interpreter.pointers.contains(word))
            .collect();
        let words: Vec<u32> = match known.is_empty() {
            true => shown.words.iter().copied().collect(),
            false => known.clone(),
        };
        for &word in &words {
            if raw.kind == WordKind::TensorMap {
                self.loaded_map(&raw);
                self.words.entry((word, WordKind::Pointer)).or_default().add(Touch::Read);
                self.words.entry((word, WordKind::Pointer)).or_default().table = true;
            } else {
                self.record(AccessBase::Word(word, raw.kind), &raw, true);
            }
        }
        if !known.is_empty() || (!words.is_empty() && others.is_empty()) {
            return;
        }
        let mut origins = Origins::default();
        let mut seen = Seen::default();
        for &id in &others {
            self.closure(id, &mut origins, &mut seen);
        }
        if others.is_empty() {
            for id in self.pointer_parts(raw.address) {
                self.closure(id, &mut origins, &mut seen);
            }
        }
        self.apply(&raw, origins, words.is_empty());
    }

    /// An access whose address is not a polynomial over a base any more.
    fn escaped(&mut self, raw: &Raw) {
        let mut origins = Origins::default();
        let mut seen = Seen::default();
        for id in self.pointer_parts(raw.address) {
            self.closure(id, &mut origins, &mut seen);
        }
        self.apply(raw, origins, true);
    }

    fn apply(&mut self, raw: &Raw, origins: Origins, must: bool) {
        let line = self.line(raw);
        let bases = origins.words.len() + origins.globals.len();
        let (module_pointers, loaded) = match (raw.kind, raw.touch) {
            (_, Touch::Unknown) | (WordKind::TensorMap | WordKind::Handle, _) => {
                (BTreeMap::new(), origins.loads.iter().copied().collect())
            }
            (WordKind::Pointer, _) => self.module_pointers_of(&origins.loads),
        };
        let several = bases + module_pointers.len() > 1;
        for word in origins.words {
            self.note(AccessBase::Word(word, WordKind::Pointer), raw, false, several);
        }
        for global in origins.globals {
            self.note(AccessBase::Global(global), raw, false, several);
        }
        // A narrow number beside a base is an index.
        let bases = bases + module_pointers.len();
        let loads = loaded.iter().filter(|load| load.whole || bases == 0);
        let loads: Vec<ExprId> = loads.map(|load| load.address).collect();
        let through = !loads.is_empty();
        if !module_pointers.is_empty() {
            let alone = bases == 1 && !through && !origins.driver && !origins.lost;
            self.through_module_pointers(raw, module_pointers, alone);
        }
        let rooted = self.mark_tables(loads);
        if through && !rooted && raw.touch != Touch::Unknown {
            // No access of a base says whether a launch loads it.
            self.unknown
                .insert(format!("{line}: uses a pointer from shared memory or an unknown place"));
        } else if through && raw.touch != Touch::Unknown {
            self.followed.insert(followed(&line));
        } else if bases == 0 && origins.driver && raw.kind == WordKind::TensorMap {
            self.drivers_map(raw);
        } else if bases == 0 && origins.driver && !origins.lost {
            // Memory that grids synchronise by: no memory of the program.
        } else if must && bases == 0 && raw.touch != Touch::Unknown {
            self.unknown.insert(format!("{line}: the address comes from no pointer that is known"));
        }
    }

    /// The driver's words lead to the parameters too, and to what maps in them describe.
    fn drivers_map(&mut self, raw: &Raw) {
        let line = self.line(raw);
        self.unknown.insert(format!("{line}: uses a tensor map in a place of the driver's own"));
    }

    fn loaded_map(&mut self, raw: &Raw) {
        let line = self.line(raw);
        self.unknown.insert(format!("{line}: uses a tensor map that lies in memory"));
    }

    fn param_address(&mut self, address: ExprId) -> Option<u32> {
        let block = self.interpreter.interner.of(Symbol::ParamBlock);
        let offset = self.interpreter.interner.add(address, block, -1)?;
        self.interpreter.interner.as_constant(offset).map(|offset| offset as u32)
    }

    fn record(&mut self, origin: AccessBase, raw: &Raw, followed: bool) {
        self.note(origin, raw, followed, raw.several);
    }

    /// `several`: the address comes from this base or from another one.
    fn note(&mut self, origin: AccessBase, raw: &Raw, followed: bool, several: bool) {
        let followed = followed && raw.kind == WordKind::Pointer && raw.touch != Touch::Unknown;
        self.note_at(origin, raw, followed.then_some(raw.address), several);
    }

    /// `address`: where that is known relative to the base.
    fn note_at(&mut self, origin: AccessBase, raw: &Raw, address: Option<ExprId>, several: bool) {
        match origin {
            AccessBase::Word(word, kind) => {
                self.words.entry((word, kind)).or_default().add(raw.touch)
            }
            AccessBase::Global(global) => self.globals.entry(global).or_default().add(raw.touch),
            AccessBase::ModulePointer(word) => {
                self.module_pointers.entry(word).or_default().used.add(raw.touch)
            }
        }
        let followed = address.is_some();
        let access = SymbolicAccess {
            // Set when the bases are numbered.
            base: Base::Pointer(0),
            touch: raw.touch,
            address,
            length: match raw.size {
                Size::Bytes(bytes) => Length::Bytes(bytes),
                Size::AtMost(bytes) => Length::AtMost(bytes),
                Size::Expression(expression) => Length::Expression(expression),
                Size::Unknown => Length::Unknown,
            },
            conditions: if followed { raw.path.clone() } else { Vec::new() },
            exact: raw.exact && followed,
            waited: if self.interpreter.effects.waits { raw.waited } else { Waited::No },
            several,
            // Known when all tables are.
            leads_on: false,
        };
        let bytes = size_of_val(&access) + size_of_val(&access.conditions[..]);
        self.interpreter.interner.budget.memory(bytes);
        self.accesses.insert((origin, raw.before, access));
    }

    fn finish(self, about: About) -> KernelAccess {
        let effects = &self.interpreter.effects;
        let (waits, trigger) = (effects.waits, effects.trigger);
        let waits_on_primary = waits && !effects.early;
        // A table has hundreds of words, and thousands of accesses.
        let words = self.words.keys().map(|&(word, kind)| AccessBase::Word(word, kind));
        let words = words.zip((0..).map(Base::Pointer));
        let globals = self.globals.keys().map(|&global| AccessBase::Global(global));
        let globals = globals.zip((0..).map(Base::Global));
        let module_pointers =
            self.module_pointers.keys().map(|&word| AccessBase::ModulePointer(word));
        let module_pointers = module_pointers.zip((0..).map(Base::GlobalPointer));
        let places: FxHashMap<AccessBase, Base> =
            words.chain(globals).chain(module_pointers).collect();
        let told = self.told_tables();
        let accesses: BTreeSet<SymbolicAccess> = self
            .accesses
            .iter()
            .map(|(origin, address, access)| {
                let leads_on = access.touch.weak() != Touch::Write
                    && self.loads_pointers(origin, *address, &told);
                SymbolicAccess { base: places[origin], leads_on, ..access.clone() }
            })
            .collect();
        let pointers = self
            .words
            .iter()
            .map(|(&(word, kind), used)| {
                let param =
                    about.params.partition_point(|&offset| offset <= word).saturating_sub(1);
                PointerWord {
                    param: param as u32,
                    offset: word - about.params.get(param).copied().unwrap_or(0).min(word),
                    block_offset: word,
                    kind,
                    mode: used.mode.unwrap_or(ParameterMode::None),
                    table: used.table,
                }
            })
            .collect();
        let globals = self
            .globals
            .iter()
            .map(|(&global, used)| GlobalUse {
                name: about.globals[global as usize].clone(),
                mode: used.mode.unwrap_or(ParameterMode::None),
                table: used.table,
            })
            .collect();
        let module_pointers = self
            .module_pointers
            .iter()
            .map(|(&(global, offset), pointer)| GlobalPointer {
                global: self.globals.keys().position(|&known| known == global).unwrap_or(0) as u32,
                offset,
                mode: pointer.used.mode.unwrap_or(ParameterMode::None),
            })
            .collect();
        let Interpreter { interner, definitions, loops, .. } = self.interpreter;
        let (expressions, symbols) = interner.into_parts();
        let bounds = (0..symbols.len() as u32)
            .map(|id| definitions.get(&SymbolId(id)).and_then(|d| d.bounds))
            .collect();
        let mut loops: Vec<LoopBound> = loops
            .iter()
            .map(|(&header, path)| LoopBound {
                header: header as u32,
                back_edge: path.back_edge.iter().copied().collect(),
                single_test: path.single_test,
            })
            .collect();
        loops.sort_by_key(|l| l.header);
        let kernel = KernelAccess {
            name: about.name,
            params_size: about.params_size,
            pointers,
            globals,
            global_pointers: module_pointers,
            accesses: accesses.into_iter().collect(),
            waits,
            waits_on_primary,
            trigger,
            unbounded: !self.unknown.is_empty(),
            unknown: self.unknown.into_iter().chain(self.followed).collect(),
            expressions,
            symbols,
            bounds,
            gated_phis: Vec::new(),
            loops,
            global_names: about.globals,
        };
        prune(kernel, |symbol| {
            let definition = definitions.get(&symbol)?;
            (definition.kind == Kind::GatedPhi).then(|| gated_phi(symbol, definition))
        })
    }
}

fn followed(line: &str) -> String {
    format!("{line}: {FOLLOWS_POINTERS}")
}

/// A gated φ with the conditions that tell its inputs apart.
fn gated_phi(symbol: SymbolId, definition: &Definition) -> GatedPhi {
    let Definition { sources, gates, .. } = definition;
    let everywhere = |condition: &Condition| {
        gates.len() == sources.len()
            && gates.iter().all(|input| input.conditions.contains(condition))
    };
    let conditions = gates.iter().map(|input| {
        let own = input.conditions.iter().filter(|condition| !everywhere(condition));
        own.copied().collect::<Vec<_>>()
    });
    let conditions = conditions.chain(repeat(Vec::new()));
    GatedPhi { symbol, inputs: sources.iter().copied().zip(conditions).collect() }
}
