//! How a call enters the driver, and the macros that declare exported functions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::driver::{Call, say};
use crate::errors::{CuError, Outcome, SUCCESS};

/// Runs the body of a driver call: refuses it before `cuInit`, in a forked child and in a host
/// function, and turns a panic into a status.
pub(super) fn enter(name: &'static str, body: impl FnOnce(&Call) -> Outcome) -> u32 {
    early(name, || body(&Call::enter()?))
}

/// Runs the body of a call that needs no initialised driver.
pub(super) fn early(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    // The state that a panic leaves is judged by the calls that follow: every one checks its
    // handles and ranges anew.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(error)) => error.0,
        Err(_) => {
            say(&format!("internal error in {name}; please report it"));
            CuError::UNKNOWN.0
        }
    }
}

/// Declares exported functions and the table of them.
macro_rules! api {
    ($table:ident; $(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) |$call:pat_param| $body:block)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            extern "C" fn $name($($argument: $kind),*) -> u32 {
                $crate::exports::enter::enter(stringify!($name), move |$call| $body)
            }
        )*
        pub(in crate::exports) const $table: &[$crate::exports::Entry] = &[
            $($crate::exports::Entry { name: stringify!($name), address: $name as *const () },)*
        ];
    };
}

/// Declares exported functions in pairs: the plain name, for which stream 0 is the legacy default
/// stream, and its twin, for which it is the calling thread's.
macro_rules! twins {
    ($table:ident; $(fn $name:ident / $twin:ident($($argument:ident: $kind:ty),* $(,)?) |$call:pat_param, $default:pat_param| $body:block)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            extern "C" fn $name($($argument: $kind),*) -> u32 {
                $crate::exports::enter::enter(stringify!($name), move |$call| {
                    let $default = $crate::driver::DefaultStream::Legacy;
                    $body
                })
            }
            #[cfg_attr(not(test), unsafe(no_mangle))]
            extern "C" fn $twin($($argument: $kind),*) -> u32 {
                $crate::exports::enter::enter(stringify!($twin), move |$call| {
                    let $default = $crate::driver::DefaultStream::PerThread;
                    $body
                })
            }
        )*
        pub(in crate::exports) const $table: &[$crate::exports::Entry] = &[
            $(
                $crate::exports::Entry { name: stringify!($name), address: $name as *const () },
                $crate::exports::Entry { name: stringify!($twin), address: $twin as *const () },
            )*
        ];
    };
}

pub(super) use {api, twins};
