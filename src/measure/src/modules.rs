//! The modules that hold selected kernels: patched when the driver has loaded them, or kept as
//! originals of twins ([`crate::twins`]) where all of their selected kernels may have one.
//!
//! Invariant: calls that the API wants one at a time (adding patches, patching) are made one at a
//! time, inside the callback of the loading.

use core::ffi::CStr;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use streamsan_wire::Selection;

use crate::cubin;
use crate::driver::{CAPABILITY, Handle, driver, twin_driver};
use crate::sanitizer::{COPY_ASYNC, PATCHES, ResourceData, SINCE_2026_4, Sanitizer, TOO_OLD};
use crate::twins;

/// The settings of the run, from its environment.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) selection: Selection,
    /// Folder of the assembled patches: `sm_90.cubin` and the like.
    pub(crate) patches: std::path::PathBuf,
}

/// The settings; set before anything is subscribed to.
pub(crate) static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// A module that holds a selected kernel.
#[derive(Debug)]
struct Module {
    /// Why it could not be patched.
    error: Option<String>,
    /// The machine code of a module that is not patched, since a second copy of it will be.
    image: Option<Arc<[u8]>>,
    /// Whether a function is a selected kernel, by its handle.
    functions: HashMap<usize, bool>,
}

#[derive(Debug, Default)]
struct Modules {
    of_interest: HashMap<usize, Module>,
    others: HashSet<usize>,
}

fn modules() -> &'static Mutex<Modules> {
    static MODULES: OnceLock<Mutex<Modules>> = OnceLock::new();
    MODULES.get_or_init(Mutex::default)
}

/// The kind of a launch's function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// In a module that is not patched.
    Unpatched,
    /// In a patched module, but nobody asked for it.
    Unasked,
    /// To be measured.
    Selected,
    /// Selected, in a module that could not be patched.
    Failed(String),
    /// Selected, in a module that is not patched, since a second copy of it is.
    Original,
    /// The API has not told of its module: its structures are not what this library thinks.
    Unknown,
}

fn is_selected(name: &str) -> bool {
    let readable = || {
        [streamsan_names::whole(name), streamsan_names::bare(name)].into_iter().flatten().collect()
    };
    SETTINGS.get().is_some_and(|settings| settings.selection.selects(None, name, readable))
}

/// Patches a module that was loaded, if it holds a selected kernel.
pub(crate) fn loaded(sanitizer: &Sanitizer, data: ResourceData) {
    let image = match (data.cubin(), data.cubin_bytes()) {
        (at, _) if at.is_null() => &[],
        // SAFETY: the API gives the address and the size of the module's machine code.
        (at, bytes) => unsafe { std::slice::from_raw_parts(at, bytes) },
    };
    // A module whose kernels are not known may hold a selected one.
    let holds_one = cubin::kernels(image).is_none_or(|names| names.iter().any(|n| is_selected(n)));
    let module = data.module() as usize;
    if !holds_one {
        let mut modules = modules().lock().unwrap_or_else(PoisonError::into_inner);
        modules.others.insert(module);
        return;
    }
    let is_copy = twins::is_loading();
    let is_original = !is_copy && may_be_copied(image);
    let error = if is_original { None } else { patch(sanitizer, data).err() };
    HAS_ORIGINALS.fetch_or(is_original, Ordering::AcqRel);
    let image = is_original.then(|| image.into());
    let mut modules = modules().lock().unwrap_or_else(PoisonError::into_inner);
    modules.others.remove(&module);
    modules.of_interest.insert(module, Module { error, image, functions: HashMap::new() });
}

static HAS_ORIGINALS: AtomicBool = AtomicBool::new(false);

/// Whether a module is the original of a copy.
pub(crate) fn has_originals() -> bool {
    HAS_ORIGINALS.load(Ordering::Acquire)
}

/// Whether a second copy of a module does what its selected kernels do: each may have a twin. A copy is
/// loaded at a launch, where the driver may load code itself and wait for the device; a program that
/// has all code loaded before its launches (CUDA C++ Programming Guide, "Lazy Loading") gets none.
fn may_be_copied(image: &[u8]) -> bool {
    let Some(settings) = SETTINGS.get() else { return false };
    if std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|mode| mode == "EAGER") {
        return false;
    }
    let may = |name: &&str| !is_selected(name) || settings.selection.may_be_twin(name);
    twin_driver().is_some() && cubin::kernels(image).is_some_and(|names| names.iter().all(may))
}

/// Whether a module is the original of a copy, and the kernel one that is to be measured.
pub(crate) fn is_of_original(module: Handle, kernel: &str) -> bool {
    image_of(module).is_some() && is_selected(kernel)
}

/// The machine code of a module that is the original of a copy.
pub(crate) fn image_of(module: Handle) -> Option<Arc<[u8]>> {
    let modules = modules().lock().unwrap_or_else(PoisonError::into_inner);
    modules.of_interest.get(&(module as usize))?.image.clone()
}

/// Why a module that was loaded is not patched.
pub(crate) fn error_of(module: Handle) -> Option<String> {
    let modules = modules().lock().unwrap_or_else(PoisonError::into_inner);
    match modules.of_interest.get(&(module as usize)) {
        Some(module) => module.error.clone(),
        None => Some("the library has not told of the copy of a module".to_owned()),
    }
}

/// Forgets a module.
pub(crate) fn unloading(module: Handle) {
    twins::unloading(module);
    let mut modules = modules().lock().unwrap_or_else(PoisonError::into_inner);
    modules.of_interest.remove(&(module as usize));
    modules.others.remove(&(module as usize));
}

fn patch(sanitizer: &Sanitizer, data: ResourceData) -> Result<(), String> {
    static PATCHED: Mutex<Option<HashSet<usize>>> = Mutex::new(None);
    let mut patched = PATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let contexts = patched.get_or_insert_default();
    if !contexts.contains(&(data.context() as usize)) {
        let path = patches()?;
        // SAFETY: a text ended by NUL and a context of the driver's.
        let added = unsafe { (sanitizer.add_patches_from_file)(path.as_ptr(), data.context()) };
        sanitizer.checked("sanitizerAddPatchesFromFile", added)?;
        contexts.insert(data.context() as usize);
    }
    let patch = |instruction, function: &CStr| {
        // SAFETY: the module that was just loaded and a text ended by NUL.
        unsafe { (sanitizer.patch_instructions)(instruction, data.module(), function.as_ptr()) }
    };
    for (instruction, function) in PATCHES {
        let patched = patch(instruction, function);
        sanitizer
            .checked("sanitizerPatchInstructions", patched)
            .map_err(|why| format!("{TOO_OLD} (instruction {instruction}: {why})"))?;
    }
    let (newer, other) = SINCE_2026_4;
    let (copy_async, [exact, before]) = COPY_ASYNC;
    let function = if patch(newer, other) == 0 { exact } else { before };
    sanitizer.checked("sanitizerPatchInstructions", patch(copy_async, function))?;
    // SAFETY: as above.
    let result = unsafe { (sanitizer.patch_module)(data.module()) };
    sanitizer.checked("sanitizerPatchModule", result)
}

/// The patches for the current context's device: of its own capability, or of the nearest lower one
/// with the same major number, whose code it runs, too (CUDA C++ Programming Guide, "Binary
/// Compatibility").
fn patches() -> Result<CString, String> {
    let driver = driver().ok_or("the driver lacks a function")?;
    let mut device = 0;
    let mut capability = [0; 2];
    // SAFETY: writable results.
    unsafe {
        (driver.ctx_get_device)(&mut device);
        for (value, number) in capability.iter_mut().zip(CAPABILITY) {
            (driver.device_get_attribute)(value, number, device);
        }
    }
    let [major, minor] = capability;
    let folder = &SETTINGS.get().ok_or("there are no settings")?.patches;
    let file = (0..=minor).rev().map(|minor| folder.join(format!("sm_{major}{minor}.cubin")));
    let file = file.into_iter().find(|file| file.is_file()).ok_or_else(|| {
        format!("{} holds no patches for devices of capability {major}.{minor}", folder.display())
    })?;
    use std::os::unix::ffi::OsStrExt;
    CString::new(file.as_os_str().as_bytes()).map_err(|error| error.to_string())
}

/// The kind of function that a launch runs.
///
/// # Safety
/// `name` is null or a text ended by NUL, if the module is one that was loaded.
pub(crate) unsafe fn function(
    module: Handle,
    function: Handle,
    name: *const core::ffi::c_char,
) -> Function {
    let mut modules = modules().lock().unwrap_or_else(PoisonError::into_inner);
    if modules.others.contains(&(module as usize)) {
        return Function::Unpatched;
    }
    let Some(module) = modules.of_interest.get_mut(&(module as usize)) else {
        return Function::Unknown;
    };
    let selected = *module.functions.entry(function as usize).or_insert_with(|| {
        if name.is_null() {
            return false;
        }
        // SAFETY: promised by the caller.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_str().is_ok_and(is_selected)
    });
    match (&module.error, selected) {
        _ if module.image.is_some() => match selected {
            true => Function::Original,
            false => Function::Unpatched,
        },
        (Some(error), true) => Function::Failed(error.clone()),
        (Some(_), false) => Function::Unpatched,
        (None, true) => Function::Selected,
        (None, false) => Function::Unasked,
    }
}
