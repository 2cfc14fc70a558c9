//! Initialisation, version, and the texts of statuses.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Entry;
use super::args::{In, Out};
use super::enter::{api, early};
use crate::driver::{Sim, in_callback, say};
use crate::errors::{self, CuError};

/// CUDA version that the simulated driver answers to.
pub(super) const DRIVER_VERSION: i32 = 12_080;

macro_rules! early_api {
    ($table:ident; $(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            extern "C" fn $name($($argument: $kind),*) -> u32 {
                early(stringify!($name), move || $body)
            }
        )*
        pub(super) const $table: &[Entry] =
            &[$(Entry { name: stringify!($name), address: $name as *const () },)*];
    };
}

early_api! { EARLY;
    fn cuInit(flags: u32) {
        if in_callback() {
            return Err(CuError::NOT_PERMITTED);
        }
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        Sim::initialize()
    }
    fn cuDriverGetVersion(version: Out<i32>) {
        version.set(DRIVER_VERSION)
    }
    fn cuGetErrorName(status: u32, text: Out<u64>) {
        let name = errors::name(status);
        text.set(name.map_or(0, |name| name.as_ptr() as u64))?;
        name.map(|_| ()).ok_or(CuError::INVALID_VALUE)
    }
    fn cuGetErrorString(status: u32, text: Out<u64>) {
        let description = errors::text(status);
        text.set(description.map_or(0, |text| text.as_ptr() as u64))?;
        description.map(|_| ()).ok_or(CuError::INVALID_VALUE)
    }
    fn cuGetExportTable(table: Out<u64>, id: In<[u8; 16]>) {
        static SAID: AtomicBool = AtomicBool::new(false);
        table.set(0)?;
        id.get()?;
        if !SAID.swap(true, Ordering::Relaxed) {
            say(
                "this program contains NVIDIA's CUDA runtime, which only runs on NVIDIA's driver",
            );
        }
        Err(CuError::NOT_FOUND)
    }
}

api! { TABLE;
    fn cuProfilerStart() |call| { call.context_check(None) }
    fn cuProfilerStop() |call| { call.context_check(None) }
}
