//! Which kernel a function handle means.
//!
//! A kernel of a library has several handles: the library's own one (`CUkernel`), which the CUDA
//! runtime launches as if it were a function, and a function (`CUfunction`) of the module that the
//! library becomes in each context. Whatever a program gave, the driver tells of a node of a graph
//! the function, and beside it the kernel if it is one of a library. The code of a kernel follows
//! from where a handle was looked up, so the kernel's own handle comes first. A function that nobody
//! looked up is tied to the kernel that the driver told with it, else to the handle by which the
//! node's launch was captured, if that is a kernel of the same name.
//!
//! CUDA driver API, "Library Management" (`cuKernelGetFunction`) and `CUDA_KERNEL_NODE_PARAMS`
//! (`func`, `kern`). That the driver tells both is not documented; it was seen with 580.159.04.
//!
//! Deliberately absent: the question to the driver which function a kernel has
//! (`cuKernelGetFunction`), which may load code.

use super::resolution::Resolution;
use super::tables::ProcessTables;
use crate::kernel_code::ImagesId;
use crate::merge::FirstLaunch;
use std::collections::HashMap;
use streamsan_model::{Entity, Kernel, KernelId, KernelParam};

/// Offset and size of each parameter of a kernel.
pub(crate) type Layout = Box<[(u32, u32)]>;

/// A kernel as a launch finds it by its handle.
#[derive(Clone, Debug)]
pub(crate) struct KnownKernel {
    pub(super) id: KernelId,
    pub(crate) name: Box<str>,
    /// Offset and size of each parameter; `None` when the driver could not tell.
    pub(super) params: Option<Layout>,
    /// Where its code is, if that was seen being loaded.
    pub(super) images: Option<ImagesId>,
}

/// The driver's description of a handle.
#[derive(Clone, Debug)]
struct DescribedKernel {
    /// Mangled, empty where the driver did not tell.
    name: Box<str>,
    params: Option<Layout>,
    /// The module or library that it comes from, 0 where the driver did not tell.
    home: u64,
}

/// The function handles of a process.
#[derive(Debug, Default)]
pub(super) struct Functions {
    told: HashMap<u64, DescribedKernel>,
    /// The kernels that handles mean, once they were used.
    known: HashMap<u64, KnownKernel>,
}

/// Kernels differ by this: name, layout of the parameters, code.
type Key = (Box<str>, Option<Layout>, Option<ImagesId>);

/// The kernels of the run.
#[derive(Debug, Default)]
pub(super) struct Kernels(HashMap<Key, KernelId>);

impl Functions {
    /// A handle stands for this kernel from now on.
    pub(super) fn tell(&mut self, first: &FirstLaunch) {
        let FirstLaunch { function, ref name, ref params, home, .. } = *first;
        let told = DescribedKernel { name: name.clone(), params: params.clone(), home };
        self.told.insert(function, told);
        self.known.remove(&function);
    }
}

/// The kernel that a handle means; `None` for an unknown one in a refused call.
pub(super) fn known(resolution: &mut Resolution<'_>, function: u64) -> Option<KnownKernel> {
    if let Some(known) = resolution.tables.functions.known.get(&function) {
        return Some(known.clone());
    }
    let told = resolution.tables.functions.told.get(&function).cloned();
    let Some(DescribedKernel { name, params, home }) = told else {
        return resolution.call.succeeded().then(|| unnamed(resolution, function));
    };
    let images = resolution.tables.modules.of_function(function, home);
    // Drivers before CUDA 12.3 do not tell the name.
    let looked_up = || resolution.tables.modules.name_of(function).map(Box::from);
    let told = (!name.is_empty()).then_some(name);
    let name: Box<str> = told.or_else(looked_up).unwrap_or_else(|| "(unnamed kernel)".into());
    let id = match resolution.kernels.0.get(&(name.clone(), params.clone(), images)) {
        Some(id) => *id,
        None => {
            let id = resolution.ids.kernel();
            resolution.kernels.0.insert((name.clone(), params.clone(), images), id);
            let layout = params.iter().flatten();
            let params = layout.map(|&(offset, size)| KernelParam { offset, size }).collect();
            resolution.declare(Entity::Kernel(Kernel { id, name: name.to_string(), params }));
            id
        }
    };
    let known = KnownKernel { id, name, params, images };
    resolution.tables.functions.known.insert(function, known.clone());
    Some(known)
}

/// A kernel that was launched without its record having been seen.
fn unnamed(resolution: &mut Resolution<'_>, function: u64) -> KnownKernel {
    let id = resolution.ids.kernel();
    let name = "(unknown kernel)";
    resolution.declare(Entity::Kernel(Kernel { id, name: name.to_owned(), params: Vec::new() }));
    let known = KnownKernel { id, name: name.into(), params: None, images: None };
    resolution.tables.functions.known.insert(function, known.clone());
    known
}

/// The handles of a kernel that a node's parameters name, 0 for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeHandles {
    /// `func`.
    pub(super) function: u64,
    /// `kern`. Of parameters that a program gave it is 0 beside a function: it does not count.
    pub(super) kernel: u64,
    /// The handle whose captured launch made the node.
    pub(super) captured: Option<u64>,
}

/// The kernel of a node, and the handle that it is known by.
pub(super) fn of_node(
    resolution: &mut Resolution<'_>,
    handles: NodeHandles,
) -> Option<(u64, KnownKernel)> {
    let NodeHandles { function, kernel, captured } = handles;
    if kernel != 0 {
        if function != 0 && is_homeless(resolution, kernel) {
            // The program looked up the function; the driver does not tell the kernel's library.
            tie(resolution, kernel, function);
        } else if function != 0 {
            tie(resolution, function, kernel);
        }
        return Some((kernel, known(resolution, kernel)?));
    }
    if let Some(captured) = captured.filter(|_| is_homeless(resolution, function))
        && has_name_of(resolution, function, captured)
    {
        tie(resolution, function, captured);
    }
    Some((function, known(resolution, function)?))
}

/// Whether nobody knows where a function comes from.
fn is_homeless(resolution: &Resolution<'_>, function: u64) -> bool {
    let home = resolution.tables.functions.told.get(&function).map_or(0, |told| told.home);
    resolution.tables.modules.of_function(function, home).is_none()
}

/// Whether the driver says the same name of two handles.
fn has_name_of(resolution: &Resolution<'_>, function: u64, other: u64) -> bool {
    let name = |handle: u64| resolution.tables.functions.told.get(&handle).map(|told| &told.name);
    name(function).is_some_and(|told| !told.is_empty() && Some(told) == name(other))
}

/// Nobody looked up `handle`; it is the same kernel as `other`.
fn tie(resolution: &mut Resolution<'_>, handle: u64, other: u64) {
    let tables = &mut *resolution.tables;
    let told = tables.functions.told.get(&other);
    let (name, home) = told.map_or(("", 0), |told| (&*told.name, told.home));
    if tables.modules.same(handle, other, (name, home)) {
        // It may have been used before as a kernel without code.
        tables.functions.known.remove(&handle);
    }
}

/// Where the code of the kernel is that a handle means, and its name, as far as both are known.
pub(super) fn code_of(tables: &ProcessTables, function: u64) -> Option<(ImagesId, &str)> {
    if let Some(known) = tables.functions.known.get(&function) {
        return Some((known.images?, &known.name));
    }
    let told = tables.functions.told.get(&function)?;
    let images = tables.modules.of_function(function, told.home)?;
    let name = Some(&*told.name).filter(|name| !name.is_empty());
    Some((images, name.or_else(|| tables.modules.name_of(function))?))
}
