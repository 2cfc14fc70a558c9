//! The code that a process has loaded, and which function comes from where.

use super::resolution::Resolution;
use crate::call::LoadedImage;
use crate::kernel_code::{ImageSource, ImagesId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use streamsan_model::{Action, Entity, KernelGap, Module, ModuleId};
use streamsan_wire::ImageOrigin;

/// The images that one call has loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub(super) images: ImagesId,
    /// The library whose module it is: the variables are the library's.
    library: Option<u64>,
    /// The call that loaded it.
    since: u64,
}

/// Loads that are over and still counted.
const MOST_ENDED: usize = 4096;

/// Loads that are over. A launch may be looked at again after its module is gone.
#[derive(Debug, Default)]
struct EndedLoads {
    /// The images, the call that loaded them and the one that unloaded them.
    loads: VecDeque<(ImagesId, u64, u64)>,
    /// The latest end that is no longer counted.
    forgotten: u64,
}

impl EndedLoads {
    fn add(&mut self, loaded: Loaded, until: u64) {
        if loaded.library.is_some() {
            return;
        }
        if self.loads.len() == MOST_ENDED
            && let Some((_, _, until)) = self.loads.pop_front()
        {
            self.forgotten = self.forgotten.max(until);
        }
        self.loads.push_back((loaded.images, loaded.since, until));
    }
}

/// A function or kernel that was looked up.
#[derive(Clone, Debug)]
struct Function {
    /// Module or library.
    home: u64,
    name: Arc<str>,
}

/// The modules and libraries of a process, by handle.
#[derive(Debug, Default)]
pub(super) struct Modules {
    loaded: HashMap<u64, Loaded>,
    ended: EndedLoads,
    functions: HashMap<u64, Function>,
}

impl Modules {
    /// Where a function comes from: as it was looked up, else as the driver says.
    pub(super) fn of_function(&self, function: u64, home: u64) -> Option<ImagesId> {
        let looked_up = self.functions.get(&function).map(|function| function.home);
        let found = looked_up.and_then(|home| self.loaded.get(&home));
        found.or_else(|| self.loaded.get(&home)).map(|loaded| loaded.images)
    }

    /// How often these images were loaded when the call `g` was made, each time with variables of
    /// its own. `None` where that is no longer known.
    pub(super) fn loads_of(&self, images: ImagesId, g: u64) -> Option<usize> {
        let loaded = self.loaded.values().filter(|loaded| loaded.library.is_none());
        let loaded = loaded.map(|loaded| (loaded.images, loaded.since, u64::MAX));
        let all = loaded.chain(self.ended.loads.iter().copied());
        let then = all.filter(|&(of, since, until)| of == images && since <= g && g < until);
        (g >= self.ended.forgotten).then(|| then.count())
    }

    /// A handle turned out to be the same kernel as another one, which comes from `home` where nobody
    /// looked it up: it is taken for looked up there. Answers whether that says something new.
    pub(super) fn same(&mut self, handle: u64, other: u64, (name, home): (&str, u64)) -> bool {
        if self.functions.contains_key(&handle) {
            return false;
        }
        let told = || self.loaded.contains_key(&home).then(|| Function { home, name: name.into() });
        let Some(found) = self.functions.get(&other).cloned().or_else(told) else { return false };
        self.functions.insert(handle, found);
        true
    }

    /// The name by which a function was looked up.
    pub(super) fn name_of(&self, function: u64) -> Option<&str> {
        self.functions.get(&function).map(|function| &*function.name)
    }
}

fn source(image: &LoadedImage) -> Option<ImageSource> {
    match image.origin {
        ImageOrigin::Lost => None,
        ImageOrigin::Copied => Some(ImageSource::Copied { hash: image.hash, size: image.size }),
        ImageOrigin::File => Some(ImageSource::File {
            path: String::from_utf8_lossy(&image.path).into(),
            offset: image.offset,
            size: image.size,
        }),
    }
}

/// `cuModuleLoad*`, `cuLibraryLoad*`: the handle is the first out value.
pub(super) fn load(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let call = resolution.call;
    let (mut sources, mut modules) = (Vec::new(), Vec::new());
    for image in &call.images {
        let Some(source) = source(image) else {
            resolution.gaps.kernel(KernelGap::ImageNotKept, call.api.name());
            continue;
        };
        let id = resolution.ids.module();
        modules.push(id);
        resolution.declare(Entity::Module(declaration(resolution, id, image, &source)));
        sources.push(source);
    }
    let images = resolution.codes.images(&sources, &modules);
    let loaded = Loaded { images, library: None, since: call.g };
    if let Some(gone) = resolution.tables.modules.loaded.insert(handle, loaded) {
        resolution.tables.modules.ended.add(gone, call.g);
    }
    None
}

fn declaration(
    resolution: &Resolution<'_>,
    id: ModuleId,
    image: &LoadedImage,
    source: &ImageSource,
) -> Module {
    let (hash, path) = match source {
        ImageSource::Copied { hash, .. } => (Some(*hash), None),
        ImageSource::File { path, .. } => (None, Some(path.to_string())),
    };
    Module { id, process: resolution.tables.id, hash, size: image.size, path, offset: image.offset }
}

/// `cuModuleUnload`, `cuLibraryUnload`.
pub(super) fn unload(resolution: &mut Resolution<'_>) {
    let handle = resolution.call.arg(0);
    let modules = &mut resolution.tables.modules;
    if let Some(loaded) = modules.loaded.remove(&handle) {
        modules.ended.add(loaded, resolution.call.g);
        resolution.tables.variables.retain(|(images, _), _| *images != loaded.images);
    }
    modules.loaded.retain(|_, loaded| loaded.library != Some(handle));
    modules.functions.retain(|_, function| function.home != handle);
}

/// `cuModuleGetFunction`, `cuLibraryGetKernel`: `(function, module, name)`. Its code is read from
/// now on, so that it is known by its first launch. NCCL looks up all of its kernels, which are read
/// only if one is launched outside of a collective operation: in a graph, that is.
pub(super) fn function(resolution: &mut Resolution<'_>) -> Option<Action> {
    let (function, home) = (resolution.call.out(0)?, resolution.call.arg(1));
    let name: Arc<str> = String::from_utf8_lossy(resolution.call.pointee.as_deref()?).into();
    resolution.tables.modules.functions.insert(function, Function { home, name: name.clone() });
    // A handle that meant another kernel is told anew before its next launch.
    let images = resolution.tables.modules.loaded.get(&home)?.images;
    if !resolution.codes.is_of_nccl(images)
        && let Some(device) = resolution.capability()
    {
        resolution.codes.ask(images, &name, device);
    }
    None
}

/// `cuKernelGetFunction(function, kernel)`.
pub(super) fn function_of_kernel(resolution: &mut Resolution<'_>) -> Option<Action> {
    let function = resolution.call.out(0)?;
    let known = resolution.tables.modules.functions.get(&resolution.call.arg(1)).cloned()?;
    resolution.tables.modules.functions.insert(function, known);
    None
}

/// `cuLibraryGetModule(module, library)`.
pub(super) fn module_of_library(resolution: &mut Resolution<'_>) -> Option<Action> {
    let module = resolution.call.out(0)?;
    let library = resolution.call.arg(1);
    let loaded = *resolution.tables.modules.loaded.get(&library)?;
    resolution.tables.modules.loaded.insert(module, Loaded { library: Some(library), ..loaded });
    None
}
