//! The exported functions of the hook table: record, call the driver, record.

use core::ffi::c_void;
use core::mem::transmute;

use streamsan_wire::kinds::*;
use streamsan_wire::{Api, Parameter, for_each_hook};

use crate::call::{Call, begin, end, takes_back};
use crate::measuring;

macro_rules! hook {
    ($name:ident ($($arg:ident: $kind:ty),* $(,)?)) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C-unwind" fn $name($($arg: <$kind as Parameter>::C),*) -> i32 {
            type Real = unsafe extern "C-unwind" fn($(<$kind as Parameter>::C),*) -> i32;
            let mut words = [$(<$kind as Parameter>::word(&$arg)),*];
            let mut call = Call::new(Api::$name);
            begin(&mut call, &mut words);
            // SAFETY: the driver's function of this name has this signature (table).
            let real = unsafe { transmute::<usize, Real>(call.real) };
            let [$($arg),*] = words;
            // SAFETY: the program's own arguments, a wrapped host function aside; structures by
            // value live until the end of this function.
            let mut result = unsafe { real($(<$kind as Parameter>::from_word($arg)),*) };
            if measuring::may_replace(Api::$name) && takes_back(&mut call, &mut words, result) {
                let [$($arg),*] = words;
                // SAFETY: the program's own arguments now.
                result = unsafe { real($(<$kind as Parameter>::from_word($arg)),*) };
            }
            end(&call, &mut words, result);
            result
        }
    };
}

macro_rules! hooks {
    ($([$($name:ident)+] $params:tt;)*) => {
        $($(hook! { $name $params })+)*

        /// Our functions in the order of [`Api`].
        pub(super) static HOOKS: [Address; Api::COUNT] = [$($(Address($name as *const c_void),)+)*];
    };
}

/// Address of a function.
pub(crate) struct Address(pub(crate) *const c_void);

// SAFETY: a constant address of code.
unsafe impl Sync for Address {}

/// Address of our own function for a hooked call.
pub(crate) fn address(api: Api) -> usize {
    exported::HOOKS[api as usize].0 as usize
}

mod exported {
    use super::*;
    for_each_hook!(hooks);
}
