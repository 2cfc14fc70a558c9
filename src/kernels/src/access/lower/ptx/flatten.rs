//! PTX as one list of steps: scopes resolved, calls of functions of the module inlined.
//!
//! Stage: lowering; from [`Module`] to [`Flat`]. Each inlined call has registers, labels and
//! parameter variables of its own.
//!
//! Invariant: a call that cannot be inlined (recursion, functions without a body, calls through
//! pointers) stays a call, and a branch whose targets are not known goes to every label in scope.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use rustc_hash::FxHashSet;

use crate::access::lower::steps::{Arg, Flat, Flow, Slot, Step};
use crate::ptx::{
    AddressBase, Body, Function, Immediate, Instruction, Module, Operand, Registers, Space,
    Statement, StatementKind, Type,
};

/// Steps of a kernel, calls inlined, beyond which calls are left alone.
const MAX_STEPS: usize = 60_000;
const MAX_DEPTH: usize = 24;

/// The meaning of a name of PTX.
#[derive(Debug, Clone)]
enum Name {
    Register(u32),
    Family(Type, u32, HashMap<u32, u32>),
    Slot(u32),
    Window,
    Targets(Vec<String>),
}

/// The names and labels of one pair of braces.
#[derive(Debug, Default)]
struct Scope {
    names: HashMap<String, Name>,
    labels: HashMap<String, u32>,
}

/// The meanings of a module's names, in a hash map: names are looked up for each operand, and there
/// may be as many operands as names.
struct Named<'m> {
    module: &'m Module,
    /// Offsets of the kernel's parameters.
    params: HashMap<&'m str, u32>,
    functions: OnceCell<HashMap<&'m str, &'m Function>>,
    variables: OnceCell<HashSet<&'m str>>,
}

impl<'m> Named<'m> {
    fn new(module: &'m Module, entry: &'m Function) -> Self {
        // The first of several of one name counts.
        let params = entry.params.iter().rev().map(|p| (p.name.as_str(), p.offset)).collect();
        Self { module, params, functions: OnceCell::new(), variables: OnceCell::new() }
    }

    /// A function, by its definition, which follows its declaration.
    fn function(&self, name: &str) -> Option<&'m Function> {
        let functions = self.functions.get_or_init(|| {
            let mut functions: HashMap<&str, &Function> = HashMap::new();
            for function in &self.module.functions {
                let known = functions.entry(&function.name).or_insert(function);
                if function.body.is_some() || known.body.is_none() {
                    *known = function;
                }
            }
            functions
        });
        functions.get(name).copied()
    }

    fn is_variable(&self, name: &str) -> bool {
        let names = || self.module.globals.iter().map(|variable| variable.name.as_str()).collect();
        self.variables.get_or_init(names).contains(name)
    }
}

/// A kernel while it is flattened.
struct Flattener<'m> {
    named: Named<'m>,
    globals: &'m HashMap<&'m str, u32>,
    flat: Flat<'m>,
    scopes: Vec<Scope>,
    /// Functions that are being inlined, the entry first, and where each returns to.
    calls: Vec<(&'m str, u32)>,
}

/// Flattens `entry`. `globals` numbers the module's global and constant variables.
pub(in crate::access) fn flatten<'m>(
    module: &'m Module,
    entry: &'m Function,
    body: &'m Body,
    globals: &'m HashMap<&'m str, u32>,
) -> Flat<'m> {
    let flat = Flat {
        steps: Vec::new(),
        labels: Vec::new(),
        registers: Vec::new(),
        wide: FxHashSet::default(),
        slots: Vec::new(),
        pairs: Vec::new(),
    };
    let mut flattener = Flattener {
        named: Named::new(module, entry),
        globals,
        flat,
        scopes: Vec::new(),
        calls: Vec::new(),
    };
    let end = flattener.new_label();
    flattener.calls.push((&entry.name, end));
    flattener.block(&body.statements);
    flattener.flat.labels[end as usize] = flattener.flat.steps.len();
    flattener.flat
}

impl<'m> Flattener<'m> {
    fn new_label(&mut self) -> u32 {
        self.flat.labels.push(usize::MAX);
        self.flat.labels.len() as u32 - 1
    }

    fn new_slot(&mut self) -> u32 {
        self.flat.slots.push(Slot::default());
        self.flat.slots.len() as u32 - 1
    }

    fn piece(&mut self, slot: u32, offset: u32, width: u32) -> u32 {
        if let Some(&(_, register)) = self.flat.slots[slot as usize].pieces.get(&offset)
            && self.flat.slots[slot as usize].pieces[&offset].0 == width
        {
            return register;
        }
        let register = self.flat.declare(Type::B32);
        let slot = &mut self.flat.slots[slot as usize];
        let overlaps = slot.pieces.iter().any(|(&at, &(size, _))| {
            at < offset.saturating_add(width) && offset < at.saturating_add(size)
        });
        slot.mixed |= overlaps;
        slot.pieces.entry(offset).or_insert((width, register));
        slot.pieces[&offset].1
    }

    fn bind(&mut self, name: &str, value: Name) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name.to_owned(), value);
        }
    }

    fn block(&mut self, statements: &'m [Statement]) {
        let mut scope = Scope::default();
        for statement in statements {
            match &statement.kind {
                StatementKind::Label(name) => {
                    let label = self.new_label();
                    scope.labels.insert(name.clone(), label);
                }
                StatementKind::BranchTargets { name, labels } => {
                    scope.names.insert(name.clone(), Name::Targets(labels.clone()));
                }
                _ => {}
            }
        }
        self.scopes.push(scope);
        for statement in statements {
            match &statement.kind {
                StatementKind::Label(name) => {
                    if let Some(label) = self.label(name) {
                        self.flat.labels[label as usize] = self.flat.steps.len();
                    }
                }
                StatementKind::Block(inner) => self.block(inner),
                StatementKind::Registers(registers) => self.declare(registers),
                StatementKind::Variable(variable) => {
                    let value = match variable.space {
                        Space::Param => Name::Slot(self.new_slot()),
                        _ => Name::Window,
                    };
                    self.bind(&variable.name, value);
                }
                StatementKind::Instruction(instruction) => self.instruction(instruction),
                _ => {}
            }
        }
        self.scopes.pop();
    }

    fn declare(&mut self, registers: &Registers) {
        let ty = registers.ty;
        if registers.vector != 1 {
            // Components of vector registers are not followed.
            return;
        }
        let value = match registers.count {
            None => Name::Register(self.flat.declare(ty)),
            Some(count) => Name::Family(ty, count, HashMap::new()),
        };
        self.bind(&registers.name, value);
    }

    fn label(&self, name: &str) -> Option<u32> {
        self.scopes.iter().rev().find_map(|scope| scope.labels.get(name).copied())
    }

    /// The meaning of a name here. Names of an outer function are not visible in an inlined one,
    /// but a well-formed module does not use any.
    fn name(&mut self, name: &str) -> Arg {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        for at in (0..self.scopes.len()).rev() {
            if let Some(found) = self.scopes[at].names.get(name) {
                return match found {
                    Name::Register(register) => Arg::Register(*register),
                    Name::Slot(slot) => Arg::Slot(*slot),
                    Name::Window => Arg::Window,
                    Name::Family(..) | Name::Targets(_) => Arg::Other,
                };
            }
            // `%r12`: the family `%r<n>`; a family's name may itself end with digits.
            for split in 1..=digits {
                let (prefix, number) = name.split_at(name.len() - split);
                let Some(Name::Family(ty, count, members)) = self.scopes[at].names.get_mut(prefix)
                else {
                    continue;
                };
                let Ok(number) = number.parse::<u32>() else { continue };
                if number < *count {
                    let flat = &mut self.flat;
                    let register = members.entry(number).or_insert_with(|| flat.declare(*ty));
                    return Arg::Register(*register);
                }
            }
        }
        if self.calls.len() == 1
            && let Some(&offset) = self.named.params.get(name)
        {
            return Arg::Param(offset);
        }
        if let Some(&global) = self.globals.get(name) {
            return Arg::Global(global);
        }
        if name.starts_with('%') {
            return Arg::Special(name.to_owned());
        }
        match self.named.is_variable(name) {
            true => Arg::Window,
            false => Arg::Other,
        }
    }

    fn arg(&mut self, operand: &Operand) -> Arg {
        match operand {
            Operand::Name(name) => self.name(name),
            Operand::Sink => Arg::Sink,
            Operand::Immediate(Immediate::Int(value)) => Arg::Constant(*value),
            Operand::Immediate(_) => Arg::Other,
            Operand::SymbolOffset(name, offset) => {
                Arg::Address(Box::new(self.name(name)), *offset, Vec::new())
            }
            Operand::Address(address) => {
                let base = match &address.base {
                    AddressBase::Name(name) => self.name(name),
                    AddressBase::Absolute => Arg::Constant(0),
                };
                let rest = address.rest.iter().map(|operand| self.arg(operand)).collect();
                Arg::Address(Box::new(base), address.offset, rest)
            }
            Operand::Vector(items) => Arg::Vector(items.iter().map(|o| self.arg(o)).collect()),
            Operand::Pair(a, b) => Arg::Pair(Box::new(self.arg(a)), Box::new(self.arg(b))),
            Operand::Not(inner) => Arg::Not(Box::new(self.arg(inner))),
            Operand::Group(items) => Arg::Group(items.iter().map(|o| self.arg(o)).collect()),
        }
    }

    fn instruction(&mut self, instruction: &'m Instruction) {
        let guard = instruction.guard.as_ref().map(|guard| match self.name(&guard.predicate) {
            Arg::Register(register) if self.flat.registers[register as usize] => {
                (register, guard.negated)
            }
            // A predicate that is not declared, or none: any value.
            _ => (self.flat.declare(Type::Pred), guard.negated),
        });
        let returns_to = self.calls.last().map_or(0, |call| call.1);
        let flow = match instruction.opcode.as_str() {
            "ret" if self.calls.len() > 1 => Flow::To(vec![returns_to]),
            "ret" | "exit" | "trap" | "brkpt" => Flow::Out,
            "bra" => match instruction.operands.first() {
                Some(Operand::Name(name)) if self.label(name).is_some() => {
                    Flow::To(self.label(name).into_iter().collect())
                }
                _ => Flow::To(self.every_label()),
            },
            "brx" => {
                let listed = match instruction.operands.get(1) {
                    Some(Operand::Name(name)) => {
                        self.scopes.iter().rev().find_map(|scope| match scope.names.get(name) {
                            Some(Name::Targets(labels)) => Some(labels.clone()),
                            _ => None,
                        })
                    }
                    _ => None,
                };
                let found: Option<Vec<u32>> = listed
                    .and_then(|labels| labels.iter().map(|label| self.label(label)).collect());
                Flow::To(found.unwrap_or_else(|| self.every_label()))
            }
            "call" => return self.call(instruction, guard),
            _ => Flow::On,
        };
        let args: Vec<Arg> = instruction.operands.iter().map(|o| self.arg(o)).collect();
        self.note_pieces(instruction, &args);
        self.push(Step {
            instruction: Some(instruction),
            machine: None,
            guard,
            args,
            flow,
            callee: None,
        });
    }

    /// All labels in scope, in the order of their numbers: that of a hash map is another each time.
    fn every_label(&self) -> Vec<u32> {
        let labels = self.scopes.iter().flat_map(|scope| scope.labels.values().copied());
        let mut labels: Vec<u32> = labels.collect();
        labels.sort_unstable();
        labels
    }

    fn push(&mut self, step: Step<'m>) {
        self.flat.steps.push(step);
    }

    /// Gives the pieces of parameter variables registers before any step is interpreted.
    fn note_pieces(&mut self, instruction: &Instruction, args: &[Arg]) {
        let memory = matches!(instruction.opcode.as_str(), "ld" | "st");
        for arg in args {
            match arg {
                Arg::Slot(slot) => self.flat.slots[*slot as usize].mixed = true,
                Arg::Address(base, offset, _) => {
                    let Arg::Slot(slot) = **base else { continue };
                    let width = instruction
                        .modifiers
                        .iter()
                        .rev()
                        .find_map(|m| Type::from_name(m))
                        .map_or(8, Type::size);
                    let count = args
                        .iter()
                        .find_map(|arg| match arg {
                            Arg::Vector(items) => Some(items.len()),
                            _ => None,
                        })
                        .unwrap_or(1);
                    if !memory {
                        self.flat.slots[slot as usize].mixed = true;
                    }
                    for item in 0..count as u32 {
                        self.piece(slot, (*offset as u32).wrapping_add(item * width), width);
                    }
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, instruction: &'m Instruction, guard: Option<(u32, bool)>) {
        let mut operands = instruction.operands.iter().peekable();
        let mut group = |operands: &mut std::iter::Peekable<std::slice::Iter<'m, Operand>>| {
            let Some(Operand::Group(items)) = operands.peek() else { return Vec::new() };
            operands.next();
            items.iter().map(|item| self.arg(item)).collect::<Vec<_>>()
        };
        let results = group(&mut operands);
        let name = match operands.next() {
            Some(Operand::Name(name)) => name.as_str(),
            _ => "",
        };
        let arguments = group(&mut operands);
        let callee = self.named.function(name);
        if let Some(function) = callee
            && let Some(body) = &function.body
            && !self.calls.iter().any(|call| call.0 == name)
            && self.calls.len() < MAX_DEPTH
            && self.flat.steps.len() < MAX_STEPS
            && function.params.len() == arguments.len()
            && function.returns.len() == results.len()
        {
            self.inline(instruction, guard, function, body, arguments, results);
            return;
        }
        let args = vec![Arg::Group(results), Arg::Group(arguments)];
        let callee = callee.map(|function| function.name.as_str());
        let instruction = Some(instruction);
        self.push(Step { instruction, machine: None, guard, args, flow: Flow::On, callee });
    }

    fn inline(
        &mut self,
        instruction: &'m Instruction,
        guard: Option<(u32, bool)>,
        function: &'m Function,
        body: &'m Body,
        arguments: Vec<Arg>,
        results: Vec<Arg>,
    ) {
        let end = self.new_label();
        if let Some((register, negated)) = guard {
            let flow = Flow::To(vec![end]);
            let guard = Some((register, !negated));
            let instruction = Some(instruction);
            self.push(Step {
                instruction,
                machine: None,
                guard,
                args: Vec::new(),
                flow,
                callee: None,
            });
        }
        let mut scope = Scope::default();
        let mut copies_back = Vec::new();
        for (param, argument) in function.params.iter().zip(arguments) {
            let value = match (param.space, argument) {
                (Space::Param, Arg::Slot(slot)) => Name::Slot(slot),
                (Space::Param, argument) => {
                    let slot = self.new_slot();
                    let register = self.piece(slot, 0, param.size);
                    self.bind_step(instruction, register, argument);
                    Name::Slot(slot)
                }
                (_, argument) => {
                    let register = self.flat.declare(param.ty);
                    self.bind_step(instruction, register, argument);
                    Name::Register(register)
                }
            };
            scope.names.insert(param.name.clone(), value);
        }
        for (param, result) in function.returns.iter().zip(results) {
            let value = match (param.space, result) {
                (Space::Param, Arg::Slot(slot)) => Name::Slot(slot),
                (Space::Param, result) => {
                    let slot = self.new_slot();
                    copies_back.push((result, self.piece(slot, 0, param.size)));
                    Name::Slot(slot)
                }
                (_, result) => {
                    let register = self.flat.declare(param.ty);
                    copies_back.push((result, register));
                    Name::Register(register)
                }
            };
            scope.names.insert(param.name.clone(), value);
        }
        self.scopes.push(scope);
        self.calls.push((&function.name, end));
        self.block(&body.statements);
        self.calls.pop();
        self.scopes.pop();
        self.flat.labels[end as usize] = self.flat.steps.len();
        for (result, register) in copies_back {
            if let Arg::Register(to) = result {
                self.bind_step(instruction, to, Arg::Register(register));
            }
        }
    }

    fn bind_step(&mut self, instruction: &'m Instruction, to: u32, value: Arg) {
        let args = vec![Arg::Register(to), value];
        let instruction = Some(instruction);
        self.push(Step {
            instruction,
            machine: None,
            guard: None,
            args,
            flow: Flow::Bind,
            callee: None,
        });
    }
}
