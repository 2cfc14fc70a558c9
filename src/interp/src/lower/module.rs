//! Lowering a module: symbols, initial values, kernels and what each of them reaches.

use std::collections::HashMap;

use streamsan_ptx::{Function, Immediate, Initializer, Linkage, Module, Space, Type, Variable};

use super::function::lower_function;
use super::symbols::Symbol;
use crate::alu::{Convert, Round, convert};
use crate::code::{Callee, Code, KernelCode};
use crate::fault::LowerError;
use crate::program::{GlobalVar, KernelId, KernelInfo, Program, Relocation, RelocationTarget};

/// Threads of a block at most, on every GPU.
const MAX_THREADS: u32 = 1024;

/// Shared memory of a block at most, in bytes, on any GPU.
const MAX_SHARED: u32 = 256 * 1024;

struct SharedVar {
    size: u64,
    align: u32,
    /// `.extern .shared name[]`: all of these are the dynamic shared memory.
    dynamic: bool,
}

pub(super) struct Context<'m> {
    /// Each function once, its definition if there is one.
    functions: Vec<&'m Function>,
    function_names: HashMap<&'m str, u32>,
    names: HashMap<&'m str, Symbol>,
    shared: Vec<SharedVar>,
    globals: Vec<GlobalVar>,
}

fn error<T>(line: u32, subject: &str, message: &str) -> Result<T, LowerError> {
    Err(LowerError { line, subject: subject.to_owned(), message: message.to_owned() })
}

impl<'m> Context<'m> {
    pub(super) fn find(&self, name: &str) -> Option<Symbol> {
        let function = || self.function_names.get(name).map(|&index| Symbol::Function(index));
        self.names.get(name).copied().or_else(function)
    }

    pub(super) fn function(&self, index: u32) -> &'m Function {
        self.functions[index as usize]
    }

    /// The callee that function `index` stands for.
    pub(super) fn callee(&self, index: u32) -> Option<Callee> {
        let function = self.function(index);
        match &function.name[..] {
            _ if function.body.is_some() => Some(Callee::Function(index)),
            "__assertfail" => Some(Callee::AssertFail),
            "vprintf" => Some(Callee::Printf),
            _ => None,
        }
    }

    pub(super) fn add_shared(&mut self, variable: &Variable) -> u32 {
        self.shared.push(SharedVar {
            size: variable.size(),
            align: variable.align,
            dynamic: variable.linkage == Linkage::Extern,
        });
        (self.shared.len() - 1) as u32
    }

    /// Adds a global whose initialiser may only name what is known already.
    pub(super) fn add_global(&mut self, variable: &Variable) -> Result<u32, LowerError> {
        let Variable { name, line, .. } = variable;
        if variable.linkage == Linkage::Extern {
            return error(*line, name, "this variable is defined in no module that is linked here");
        }
        let size = variable.size();
        self.globals.push(GlobalVar {
            name: name.clone(),
            size,
            align: variable.align,
            init: vec![0; size as usize],
            relocations: Vec::new(),
            constant: variable.space == Space::Const,
        });
        let index = self.globals.len() - 1;
        self.initialise(index, variable)?;
        Ok(index as u32)
    }

    fn initialise(&mut self, index: usize, variable: &Variable) -> Result<(), LowerError> {
        let Some(init) = &variable.init else { return Ok(()) };
        let mut writer = Writer {
            context: self,
            variable,
            bytes: vec![0; variable.size() as usize],
            relocations: Vec::new(),
        };
        // The innermost items are vectors if the type is one.
        let mut dims: Vec<u64> = variable.dims.iter().skip(1).map(|d| d.unwrap_or(0)).collect();
        if variable.vector > 1 {
            dims.push(u64::from(variable.vector));
        }
        writer.write(init, &dims, 0)?;
        let (bytes, relocations) = (writer.bytes, writer.relocations);
        self.globals[index].init = bytes;
        self.globals[index].relocations = relocations;
        Ok(())
    }

    /// Offsets of the shared variables in `used`, and the end of the static ones.
    fn shared_layout(&self, used: &[u32]) -> (Vec<(u32, u32)>, u32) {
        let mut end = 0u64;
        let mut layout = Vec::new();
        let mut place = |index: u32, end: &mut u64, variable: &SharedVar| {
            let offset = end.next_multiple_of(u64::from(variable.align.max(1)));
            *end = offset + variable.size;
            layout.push((index, offset as u32));
        };
        for &index in used {
            let variable = &self.shared[index as usize];
            if !variable.dynamic {
                place(index, &mut end, variable);
            }
        }
        let static_end = end;
        for &index in used {
            let variable = &self.shared[index as usize];
            if variable.dynamic {
                let mut start = static_end;
                place(index, &mut start, variable);
            }
        }
        (layout, static_end.min(u64::from(u32::MAX)) as u32)
    }
}

/// Turns an initialiser into bytes.
struct Writer<'a, 'm> {
    context: &'a Context<'m>,
    variable: &'a Variable,
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
}

impl Writer<'_, '_> {
    fn write(&mut self, init: &Initializer, dims: &[u64], at: u64) -> Result<(), LowerError> {
        let Variable { ty, name, line, .. } = self.variable;
        let size = u64::from(ty.size());
        match init {
            Initializer::List(items) => {
                let step = dims.iter().product::<u64>() * size;
                for (n, item) in items.iter().enumerate() {
                    self.write(item, dims.get(1..).unwrap_or(&[]), at + n as u64 * step)?;
                }
            }
            Initializer::Value(value) => {
                let bits = element_bits(*value, *ty);
                let Some(place) = self.bytes.get_mut(at as usize..(at + size) as usize) else {
                    return error(*line, name, "more initial values than elements");
                };
                let bits = u128::from(bits).to_le_bytes();
                place.copy_from_slice(&bits[..size as usize]);
            }
            Initializer::Symbol { name: target, offset, .. } => {
                if size != 8 || at + 8 > self.bytes.len() as u64 {
                    return error(*line, name, "an address needs an element of 64 bits");
                }
                let target = match self.context.find(target) {
                    Some(Symbol::Global(index)) => RelocationTarget::Global(index),
                    Some(Symbol::Function(index)) => RelocationTarget::Function(index),
                    _ => {
                        return error(*line, target, "no global variable or function of this name");
                    }
                };
                self.relocations.push(Relocation { offset: at, target, addend: *offset });
            }
        }
        Ok(())
    }
}

fn element_bits(value: Immediate, ty: Type) -> u64 {
    let double = match value {
        Immediate::Int(value) if ty.is_float() && matches!(ty, Type::F32 | Type::F64) => {
            value as f64
        }
        Immediate::Int(value) => return value as u64,
        Immediate::F32(bits) if ty != Type::F64 => return u64::from(bits),
        Immediate::F32(bits) => f64::from(f32::from_bits(bits)),
        Immediate::F64(bits) => f64::from_bits(bits),
    };
    let spec = Convert {
        from: Type::F64,
        to: ty,
        round: Round::Nearest,
        integral: false,
        saturate: false,
        flush: false,
        relu: false,
    };
    convert(spec, double.to_bits())
}

/// See [`Program::lower`].
pub(crate) fn lower(module: &Module) -> Result<Program, LowerError> {
    if module.address_size != 64 {
        return error(0, ".address_size", "only 64-bit addresses exist on current GPUs");
    }
    let mut context = Context {
        functions: Vec::new(),
        function_names: HashMap::new(),
        names: HashMap::new(),
        shared: Vec::new(),
        globals: Vec::new(),
    };
    for function in &module.functions {
        match context.function_names.get(&function.name[..]) {
            None => {
                let index = context.functions.len() as u32;
                context.function_names.insert(&function.name, index);
                context.functions.push(function);
            }
            Some(&index) if context.functions[index as usize].body.is_none() => {
                context.functions[index as usize] = function;
            }
            Some(_) if function.body.is_some() => {
                return error(function.line, &function.name, "this function is defined twice");
            }
            Some(_) => {}
        }
    }
    declare_variables(&mut context, module)?;
    lower_functions(context)
}

fn declare_variables<'m>(context: &mut Context<'m>, module: &'m Module) -> Result<(), LowerError> {
    // An extern declaration may stand beside the definition.
    let defined =
        |name: &str| module.globals.iter().any(|g| g.name == name && g.linkage != Linkage::Extern);
    let mut later = Vec::new();
    for variable in &module.globals {
        let symbol = match variable.space {
            Space::Shared => Symbol::Shared(context.add_shared(variable)),
            Space::Global | Space::Const => {
                if variable.linkage == Linkage::Extern && defined(&variable.name) {
                    continue;
                }
                // Addresses of later variables may stand in initialisers: bytes come afterwards.
                let index = context.add_global(&Variable { init: None, ..variable.clone() })?;
                later.push((index, variable));
                Symbol::Global(index)
            }
            _ => {
                let Variable { line, name, .. } = variable;
                return error(*line, name, "variables of this space are not supported");
            }
        };
        if context.names.insert(&variable.name, symbol).is_some() {
            return error(variable.line, &variable.name, "this variable is declared twice");
        }
    }
    for (index, variable) in later {
        // An unsized array gets its size from its initialiser.
        context.globals[index as usize].size = variable.size();
        context.globals[index as usize].init = vec![0; variable.size() as usize];
        context.initialise(index as usize, variable)?;
    }
    Ok(())
}

fn lower_functions(mut context: Context<'_>) -> Result<Program, LowerError> {
    let mut codes = Vec::new();
    let mut edges: Vec<Edges> = Vec::new();
    for index in 0..context.functions.len() {
        let function = context.functions[index];
        match &function.body {
            None => {
                codes.push(Code::default());
                edges.push((Vec::new(), false, Vec::new()));
            }
            Some(body) => {
                let lowering =
                    lower_function(&mut context, function, &body.statements, body.end_line)?;
                codes.push(lowering.code);
                edges.push((lowering.called, lowering.calls_pointer, lowering.shared_used));
            }
        }
    }
    let mut program = Program {
        kernels: Vec::new(),
        names: HashMap::new(),
        globals: Vec::new(),
        kernel_code: Vec::new(),
        functions: Vec::new(),
    };
    for (index, function) in context.functions.iter().enumerate() {
        if !function.is_entry || function.body.is_none() {
            continue;
        }
        let mut reachable = vec![index as u32];
        close(&mut reachable, &edges);
        let certain = reachable.len();
        if reachable.iter().any(|&f| edges[f as usize].1) {
            // A pointer may lead to every function that is no kernel.
            for function in 0..codes.len() as u32 {
                if !context.function(function).is_entry && !reachable.contains(&function) {
                    reachable.push(function);
                }
            }
        }
        let mut used: Vec<u32> =
            reachable.iter().flat_map(|&f| edges[f as usize].2.iter().copied()).collect();
        used.sort_unstable();
        used.dedup();
        let (shared, static_shared) = context.shared_layout(&used);
        if static_shared > MAX_SHARED {
            return error(
                function.line,
                &function.name,
                "uses more shared memory than any GPU has",
            );
        }
        program.names.insert(function.name.clone(), KernelId(program.kernels.len() as u32));
        program.kernels.push(info(function, &codes, &reachable, static_shared));
        program.kernel_code.push(KernelCode {
            function: index as u32,
            reachable,
            certain,
            shared,
            static_shared,
        });
    }
    program.globals = context.globals;
    program.functions = codes;
    Ok(program)
}

/// Functions called by name, whether any is called through a pointer, shared variables used.
type Edges = (Vec<u32>, bool, Vec<u32>);

/// Adds everything that is called by name from what is there.
fn close(reachable: &mut Vec<u32>, edges: &[Edges]) {
    let mut at = 0;
    while let Some(&next) = reachable.get(at) {
        for &callee in &edges[next as usize].0 {
            if !reachable.contains(&callee) {
                reachable.push(callee);
            }
        }
        at += 1;
    }
}

fn info(function: &Function, codes: &[Code], reachable: &[u32], static_shared: u32) -> KernelInfo {
    let threads = function.max_threads.map_or(MAX_THREADS, |[x, y, z]| {
        x.saturating_mul(y).saturating_mul(z).clamp(1, MAX_THREADS)
    });
    KernelInfo {
        name: function.name.clone(),
        params: function.params.iter().map(|p| (p.offset, p.size)).collect(),
        params_size: function.params_size,
        static_shared,
        local: reachable.iter().map(|&f| codes[f as usize].local).fold(0, u32::saturating_add),
        max_threads: threads,
        regs: codes[reachable[0] as usize].registers.clamp(8, 255),
        grid_wait: reachable.iter().any(|&f| codes[f as usize].grid_wait),
    }
}
