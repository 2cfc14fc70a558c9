//! `streamsan kernels`: the kernels of an image, their parameters, and what they access.

use super::output::{print, print_json, warn};
use super::run::kernel_reader;
use crate::error::Error;
use crate::options::KernelsOptions;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use streamsan_kernels::access::{Base, KernelAccess, analyse_kernel};
use streamsan_kernels::image::{
    CodeKind, ComputeCapability, Image, ListedKernel, Listing, Parameter, Source, Target,
};
use streamsan_kernels::ptx::Module;
use streamsan_kernels::reader::{Read, Request, Unread};
use streamsan_model::{ExitCode, Trigger};
use streamsan_names::{printable, printable_first, printable_line};

/// `streamsan kernels`.
///
/// # Errors
///
/// A file that cannot be read or is no image, and a device that the image has no code for.
pub(crate) fn kernels(options: &KernelsOptions) -> Result<ExitCode, Error> {
    let path = &options.image;
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let image =
        Image::read(&bytes).map_err(|source| Error::Image { path: path.clone(), source })?;
    if let Some(device) = options.device
        && image.selected(device).next().is_none()
    {
        return Err(Error::Usage(no_code(&image, device)));
    }
    let listing = Listing::new(&image, options.device);
    let mut read = machine_code(&bytes, &image, &listing, options.device).into_iter();
    let kernels = listing.kernels.iter().map(|kernel| match kernel.module {
        Some(module) => {
            KernelRow::new(kernel, Accesses::by_ptx(&listing.modules[module], &kernel.name))
        }
        None => KernelRow::new(kernel, read.next().map_or_else(Accesses::default, Accesses::read)),
    });
    let kernels: Vec<_> = kernels.collect();
    if options.json {
        let kernels: Vec<_> = kernels.iter().map(KernelRow::json).collect();
        print_json(&json!({ "schema": 1, "kernels": kernels }));
    } else {
        let kernels: Vec<_> = kernels.iter().map(KernelRow::text).collect();
        print(&kernels.join("\n"));
    }
    for problem in &listing.problems {
        let code = code(problem.kind, problem.target);
        warn(&format!("{}: {code} cannot be read: {}", path.display(), problem.reason));
    }
    Ok(if listing.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::UNREADABLE })
}

/// The accesses that machine code tells of kernels without PTX, in their order: that of the device,
/// else the newest.
fn machine_code(
    bytes: &[u8],
    image: &Image<'_>,
    listing: &Listing,
    device: Option<ComputeCapability>,
) -> Vec<Result<Read, Unread>> {
    let newest = |kernel: &ListedKernel| {
        let sources = kernel.sources.iter().filter(|source| source.kind == CodeKind::Cubin);
        sources.max_by_key(|source| source.target).copied()
    };
    let requests = listing.kernels.iter().filter(|kernel| kernel.module.is_none()).map(|kernel| {
        let source = newest(kernel);
        let target = source.and_then(|source| source.target).map(|target| target.capability);
        let container = source.map(|source| &image.containers[source.container]);
        let code = container.map_or(0..0, |container| {
            let start = container.offset as usize;
            start..start + container.size as usize
        });
        let device = device.or(target).unwrap_or(ComputeCapability { major: 0, minor: 0 });
        Request { image: &bytes[code], device, kernel: &kernel.name }
    });
    let requests: Vec<_> = requests.collect();
    if requests.is_empty() { Vec::new() } else { kernel_reader(None).read(&requests) }
}

fn no_code(image: &Image<'_>, device: ComputeCapability) -> String {
    let there: BTreeSet<_> = image.entries().map(|entry| (entry.kind, entry.target)).collect();
    let there: Vec<_> = there.into_iter().map(|(kind, target)| code(kind, target)).collect();
    format!("the image has no code that a device of {device} can run; it has {}", there.join(", "))
}

/// The words for a piece of code.
fn code(kind: CodeKind, target: Option<Target>) -> String {
    let target = target.map(|target| format!(" for {target}")).unwrap_or_default();
    match kind {
        CodeKind::Ptx => format!("PTX{target}"),
        CodeKind::Cubin => format!("cubin{target}"),
        CodeKind::Other(kind) => format!("code of kind {kind}{target}"),
    }
}

/// The accesses known of a kernel.
#[derive(Default)]
struct Accesses {
    /// Words of the parameters that are used as addresses.
    words: Vec<Word>,
    globals: Vec<Global>,
    /// Words of variables that are used as addresses.
    held: Vec<Held>,
    waits: bool,
    waits_on_primary: bool,
    trigger: Trigger,
    /// Why it may touch anything.
    unknown: Vec<String>,
}

struct Word {
    parameter: u32,
    /// In bytes from the start of the parameter.
    offset: u32,
    mode: &'static str,
    /// Pointers are loaded from what it points to.
    table: bool,
    /// In symbolic form, each once.
    ranges: BTreeSet<String>,
}

struct Held {
    global: String,
    /// In bytes from the start of the variable.
    offset: u32,
    mode: &'static str,
    ranges: BTreeSet<String>,
}

struct Global {
    name: String,
    mode: &'static str,
    ranges: BTreeSet<String>,
}

impl Accesses {
    fn unknown(reason: String) -> Self {
        Self { unknown: vec![reason], ..Self::default() }
    }

    fn by_ptx(module: &Module, kernel: &str) -> Self {
        match analyse_kernel(module, kernel) {
            Some(Ok(access)) => Self::of(&access),
            Some(Err(too_large)) => Self::unknown(too_large.to_string()),
            None => Self::unknown("its PTX has no body".to_owned()),
        }
    }

    fn read(outcome: Result<Read, Unread>) -> Self {
        match outcome {
            Ok(read) => Self::of(&read.access),
            Err(reason) => Self::unknown(reason.to_string()),
        }
    }

    fn of(access: &KernelAccess) -> Self {
        let words = access.pointers.iter().zip(0..).map(|(word, index)| Word {
            parameter: word.param,
            offset: word.offset,
            mode: word.mode.description(),
            table: word.table,
            ranges: ranges(access, Base::Pointer(index)),
        });
        let globals = access.globals.iter().zip(0..).map(|(global, index)| Global {
            name: global.name.clone(),
            mode: global.mode.description(),
            ranges: ranges(access, Base::Global(index)),
        });
        let held = access.global_pointers.iter().zip(0..).map(|(held, index)| Held {
            global: access.globals[held.global as usize].name.clone(),
            offset: held.offset,
            mode: held.mode.description(),
            ranges: ranges(access, Base::GlobalPointer(index)),
        });
        Self {
            words: words.collect(),
            globals: globals.collect(),
            held: held.collect(),
            waits: access.waits,
            waits_on_primary: access.waits_on_primary,
            trigger: access.trigger,
            unknown: access.unknown.clone(),
        }
    }
}

/// The accesses of one word or variable in symbolic form.
fn ranges(access: &KernelAccess, base: Base) -> BTreeSet<String> {
    let here = access.accesses.iter().filter(|touched| touched.base == base);
    here.map(|touched| access.describe(touched)).collect()
}

/// A kernel and all that is told of it.
struct KernelRow<'l> {
    kernel: &'l ListedKernel,
    parameters: &'l [Parameter],
    accesses: Accesses,
}

impl<'l> KernelRow<'l> {
    fn new(kernel: &'l ListedKernel, mut accesses: Accesses) -> Self {
        let parameters = kernel.parameters.as_deref().unwrap_or_else(|reason| {
            accesses.unknown.push(format!("its parameters are not known: {reason}"));
            &[]
        });
        Self { kernel, parameters, accesses }
    }

    fn json(&self) -> Value {
        let sources: Vec<_> = self.kernel.sources.iter().map(source_json).collect();
        let parameters: Vec<_> = self
            .parameters
            .iter()
            .map(|p| json!({ "index": p.index, "offset": p.offset, "size": p.size }))
            .collect();
        let pointer = |word: &Word| {
            json!({
                "param": word.parameter,
                "offset": word.offset,
                "mode": word.mode,
                "table": word.table,
                "range": joined(&word.ranges),
            })
        };
        let global = |global: &Global| json!({ "name": global.name, "mode": global.mode, "range": joined(&global.ranges) });
        let held = |held: &Held| json!({ "global": held.global, "offset": held.offset, "mode": held.mode, "range": joined(&held.ranges) });
        let Accesses { words, globals, held: pointers, unknown, .. } = &self.accesses;
        let mut kernel = json!({
            "name": self.kernel.name,
            "sources": sources,
            "parameters": parameters,
            "pointers": words.iter().map(pointer).collect::<Vec<_>>(),
            "globals": globals.iter().map(global).collect::<Vec<_>>(),
            "held": pointers.iter().map(held).collect::<Vec<_>>(),
            "waits_on_primary": self.accesses.waits_on_primary,
            "waits": self.accesses.waits,
            "trigger": self.accesses.trigger.description(),
            "unknown": unknown,
        });
        if let Some(readable) = streamsan_names::whole(&self.kernel.name) {
            kernel["demangled"] = readable.into();
        }
        kernel
    }

    fn text(&self) -> String {
        let mut lines = vec![printable_first(&self.kernel.name).into_owned()];
        let readable = streamsan_names::whole(&self.kernel.name);
        lines.extend(readable.map(|readable| format!("  {}", printable(&readable))));
        let sources: Vec<_> = self.kernel.sources.iter().map(source_text).collect();
        lines.push(format!("  from {}", sources.join(", ")));
        let indented = |ranges: &BTreeSet<String>| {
            ranges
                .iter()
                .map(|range| format!("      {}", printable_line(range)))
                .collect::<Vec<_>>()
        };
        for Parameter { index, offset, size } in self.parameters {
            let size = bytes((*size).into());
            lines.push(format!("  parameter {index} at offset {offset}, {size}"));
            for word in self.accesses.words.iter().filter(|word| word.parameter == *index) {
                let table = if word.table { ", and pointers are loaded from it" } else { "" };
                lines.push(format!("    address at +{}: {}{table}", word.offset, word.mode));
                lines.extend(indented(&word.ranges));
            }
        }
        for Global { name, mode, ranges } in &self.accesses.globals {
            lines.push(format!("  global {}: {mode}", printable(name)));
            lines.extend(indented(ranges));
        }
        for Held { global, offset, mode, ranges } in &self.accesses.held {
            lines.push(format!("  address in {} at +{offset}: {mode}", printable(global)));
            lines.extend(indented(ranges));
        }
        let wait = match (self.accesses.waits, self.accesses.waits_on_primary) {
            (_, true) => Some("  waits for the kernel before it (programmatic launch)"),
            (true, _) => Some("  waits for the kernel before it, and touches memory before that"),
            _ => None,
        };
        let trigger = match self.accesses.trigger {
            Trigger::AtEnd => None,
            Trigger::BehindWait => Some("  lets the kernel behind it begin, behind its own wait"),
            Trigger::Early => {
                Some("  lets the kernel behind it begin, perhaps before its own wait")
            }
        };
        lines.extend(wait.into_iter().chain(trigger).map(str::to_owned));
        let unknown = self.accesses.unknown.iter();
        lines.extend(
            unknown.map(|reason| format!("  may touch anything: {}", printable_line(reason))),
        );
        lines.join("\n") + "\n"
    }
}

fn source_json(source: &Source) -> Value {
    let kind = match source.kind {
        CodeKind::Ptx => "ptx",
        CodeKind::Cubin => "cubin",
        CodeKind::Other(_) => "other",
    };
    json!({
        "kind": kind,
        "target": source.target.map(|target| target.to_string()),
        "code_size": source.code_size,
        "relocatable": source.relocatable,
    })
}

fn source_text(source: &Source) -> String {
    let mut text = code(source.kind, source.target);
    if let Some(size) = source.code_size {
        let _ = write!(text, " ({})", bytes(size));
    }
    if source.relocatable {
        text.push_str(" (to be linked)");
    }
    text
}

fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

fn joined(ranges: &BTreeSet<String>) -> String {
    let ranges: Vec<_> = ranges.iter().map(String::as_str).collect();
    ranges.join("; ")
}
