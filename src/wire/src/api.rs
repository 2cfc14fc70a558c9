//! The hooked calls as an enum, generated from the table.

use crate::for_each_hook;
use crate::signature::kinds::*;
use crate::signature::{Param, Parameter, Signature};

macro_rules! parameters {
    ($($arg:ident: $kind:ty),* $(,)?) => {
        &[$(Param {
            name: stringify!($arg),
            kind: <$kind as Parameter>::KIND,
            scalar: <$kind as Parameter>::SCALAR,
        }),*]
    };
}

macro_rules! define {
    ($([$($name:ident)+] $params:tt;)*) => {
        /// A hooked driver call by its exact symbol, versions and per-thread twins included.
        #[expect(non_camel_case_types, reason = "the names are the driver's symbols")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Api {
            $($(
                #[doc = concat!("`", stringify!($name), "`")]
                $name,
            )+)*
        }

        impl Api {
            /// All hooked calls in the order of their numbers.
            pub const ALL: &'static [Api] = &[$($(Api::$name,)+)*];
        }

        static SIGNATURES: [Signature; Api::ALL.len()] = [
            $($(Signature::new(stringify!($name), parameters! $params),)+)*
        ];
    };
}

for_each_hook!(define);

impl Api {
    /// Number of hooked calls.
    pub const COUNT: usize = Api::ALL.len();

    /// The exact exported symbol.
    pub fn name(self) -> &'static str {
        self.signature().name
    }

    /// The parameters, with the way in which each is recorded.
    #[inline]
    pub fn signature(self) -> &'static Signature {
        &SIGNATURES[self as usize]
    }

    /// Whether a finding can be about the call, so that its stack is worth knowing: not where it
    /// only asks, or chooses the current context.
    #[inline]
    pub const fn is_worth_a_stack(self) -> bool {
        !matches!(
            self,
            Self::cuCtxPushCurrent
                | Self::cuCtxPushCurrent_v2
                | Self::cuCtxPopCurrent
                | Self::cuCtxPopCurrent_v2
                | Self::cuCtxSetCurrent
                | Self::cuStreamQuery
                | Self::cuStreamQuery_ptsz
                | Self::cuEventQuery
                | Self::cuEventElapsedTime
                | Self::cuEventElapsedTime_v2
                | Self::cuParamSetSize
                | Self::cuParamSeti
                | Self::cuParamSetv
        )
    }

    /// The inverse of `as u16`.
    #[inline]
    pub fn from_u16(number: u16) -> Option<Api> {
        Api::ALL.get(usize::from(number)).copied()
    }
}
