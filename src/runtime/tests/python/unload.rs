//! A program that loads an interpreter, and unloads it again: walks go on all the time.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

type FramesText = unsafe extern "C" fn(*mut u8, usize, usize, c_int) -> usize;
type Object = *mut c_void;
type Method = unsafe extern "C" fn(Object, Object) -> Object;

/// `PyMethodDef`.
#[repr(C)]
struct Definition {
    name: *const c_char,
    method: Method,
    flags: c_int,
    documentation: *const c_char,
}

const METH_NOARGS: c_int = 4;

thread_local! {
    static FRAMES: RefCell<Option<FramesText>> = const { RefCell::new(None) };
    static SEEN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Walks before the interpreter is loaded, while it runs Python code, and after it is gone. Says
/// what is wrong.
pub(crate) fn run(library: &Path, interpreter: &Path) -> Result<(), String> {
    let frames = find(open(library)?, c"frames_text")?;
    // SAFETY: the library's function of this name has this signature.
    let frames: FramesText = unsafe { core::mem::transmute(frames) };
    FRAMES.set(Some(frames));
    for _ in 0..100 {
        expect(&text(), "", "before there is an interpreter")?;
    }
    let python = open(interpreter)?;
    // How often a look is taken is the library's affair; by then it has been.
    for _ in 0..100 {
        expect(&text(), "", "before the interpreter starts")?;
    }
    run_python(python)?;
    let seen = SEEN.take();
    expect(&seen, "P\t<string>\tcaller\t2\nP\t<string>\t<module>\t3\n", "while it runs")?;
    expect(&text(), "", "after the interpreter ended")?;
    // SAFETY: nothing of the interpreter is used from here on.
    unsafe { libc::dlclose(python) };
    if is_mapped(interpreter) {
        return Err("the interpreter stays loaded".into());
    }
    expect(&text(), "refused\tthe interpreter's library was unloaded\n", "after it is gone")
}

fn expect(found: &str, expected: &str, when: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{when}: {found:?}")) }
}

/// The library's text, without native frames.
fn text() -> String {
    let mut buffer = vec![0u8; 1 << 16];
    let frames = FRAMES.with_borrow(|frames| frames.expect("the library is loaded"));
    // SAFETY: the buffer's own size.
    let len = unsafe { frames(buffer.as_mut_ptr(), buffer.len(), 64, 1) };
    let text = String::from_utf8_lossy(&buffer[..len]).into_owned();
    text.lines().filter(|line| !line.starts_with("N\t")).map(|line| format!("{line}\n")).collect()
}

/// Runs a Python function that calls [`text`], without the help of an extension module: those keep
/// the interpreter from being unloaded.
fn run_python(python: *mut c_void) -> Result<(), String> {
    unsafe extern "C" fn call(_: Object, _: Object) -> Object {
        SEEN.set(text());
        // SAFETY: never null: set before the program runs.
        unsafe { NUMBER.with_borrow(|number| number.expect("the interpreter runs")(0)) }
    }
    type Number = unsafe extern "C" fn(i64) -> Object;
    thread_local! {
        static NUMBER: RefCell<Option<Number>> = const { RefCell::new(None) };
    }
    let definition = Definition {
        name: c"call".as_ptr(),
        method: call,
        flags: METH_NOARGS,
        documentation: ptr::null(),
    };
    // SAFETY: the interpreter's functions of these names have these signatures; the definition
    // outlives the interpreter's end.
    unsafe {
        let start: unsafe extern "C" fn(c_int) =
            core::mem::transmute(find(python, c"Py_InitializeEx")?);
        let end: unsafe extern "C" fn() -> c_int =
            core::mem::transmute(find(python, c"Py_FinalizeEx")?);
        let run: unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int =
            core::mem::transmute(find(python, c"PyRun_SimpleStringFlags")?);
        let function: unsafe extern "C" fn(*const Definition, Object, Object) -> Object =
            core::mem::transmute(find(python, c"PyCFunction_NewEx")?);
        let module: unsafe extern "C" fn(*const c_char) -> Object =
            core::mem::transmute(find(python, c"PyImport_AddModule")?);
        let set: unsafe extern "C" fn(Object, *const c_char, Object) -> c_int =
            core::mem::transmute(find(python, c"PyObject_SetAttrString")?);
        NUMBER.set(Some(core::mem::transmute::<*mut c_void, Number>(find(
            python,
            c"PyLong_FromLong",
        )?)));
        start(0);
        let function = function(&definition, ptr::null_mut(), ptr::null_mut());
        set(module(c"__main__".as_ptr()), c"call".as_ptr(), function);
        let status = run(c"def caller():\n  call()\ncaller()\n".as_ptr(), ptr::null_mut());
        if status != 0 || end() != 0 {
            return Err("the interpreter does not run".into());
        }
    }
    Ok(())
}

fn is_mapped(path: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    path.to_str().is_none_or(|path| maps.contains(path))
}

fn open(path: &Path) -> Result<*mut c_void, String> {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: a NUL-terminated path.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if handle.is_null() { Err(format!("{path:?} does not load")) } else { Ok(handle) }
}

fn find(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: a handle of `open`.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() { Err(format!("{name:?} is missing")) } else { Ok(found) }
}
