//! Fundamental types of PTX (PTX ISA, section "Types") and their sizes.

/// A fundamental PTX type, as written behind a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    TF32,
    F32,
    F64,
    Pred,
    /// Texture, sampler and surface references: opaque 64-bit handles.
    Opaque,
}

impl Type {
    /// The type named by a modifier without its dot (`u32`), if it names one.
    pub fn from_name(name: &str) -> Option<Type> {
        Some(match name {
            "b8" => Type::B8,
            "b16" => Type::B16,
            "b32" => Type::B32,
            "b64" => Type::B64,
            "b128" => Type::B128,
            "u8" => Type::U8,
            "u16" => Type::U16,
            "u32" => Type::U32,
            "u64" => Type::U64,
            "s8" => Type::S8,
            "s16" => Type::S16,
            "s32" => Type::S32,
            "s64" => Type::S64,
            "f16" => Type::F16,
            "f16x2" => Type::F16x2,
            "bf16" => Type::BF16,
            "bf16x2" => Type::BF16x2,
            "tf32" => Type::TF32,
            "f32" => Type::F32,
            "f64" => Type::F64,
            "pred" => Type::Pred,
            "texref" | "samplerref" | "surfref" => Type::Opaque,
            _ => return None,
        })
    }

    /// Width in bits; a predicate counts as one bit.
    pub fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::B8 | Type::U8 | Type::S8 => 8,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::BF16 => 16,
            Type::B32
            | Type::U32
            | Type::S32
            | Type::F32
            | Type::TF32
            | Type::F16x2
            | Type::BF16x2 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 | Type::Opaque => 64,
            Type::B128 => 128,
        }
    }

    /// Size in memory, in bytes; also the natural alignment.
    pub fn size(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether loads and conversions extend the sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// Whether the value is a floating-point number (packed pairs included).
    pub fn is_float(self) -> bool {
        matches!(
            self,
            Type::F16
                | Type::F16x2
                | Type::BF16
                | Type::BF16x2
                | Type::TF32
                | Type::F32
                | Type::F64
        )
    }
}
