//! The look-up in front of the C library's, for aarch64. Arguments: x0 handle, x1 name, x2 version.
//!
//! x9 and x16 are nobody's at a call (AAPCS64). Jumps go by x16, after which a protected page takes
//! `bti c` for its begin; x30 keeps the program's return address.

/// A function that looks at the name, and goes on to `$driver` or to what `$real` holds.
macro_rules! lookup {
    ($name:ident, $real:ident, $driver:ident) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                // bti c
                "hint #34",
                "2:",
                "adrp x16, {real}",
                "ldr x16, [x16, :lo12:{real}]",
                "cbz x16, 4f",
                // RTLD_DEFAULT is 0 and RTLD_NEXT -1.
                "add x9, x0, #1",
                "cmp x9, #1",
                "b.ls 3f",
                "cbz x1, 3f",
                "ldrb w9, [x1]",
                "cmp w9, #0x63",
                "b.ne 5f",
                "ldrb w9, [x1, #1]",
                "cmp w9, #0x75",
                "b.ne 3f",
                "ldrb w9, [x1, #2]",
                "sub w9, w9, #0x41",
                "cmp w9, #25",
                "b.hi 3f",
                "b {driver}",
                "5:",
                "cmp w9, #0x6e",
                "b.ne 6f",
                "ldrb w9, [x1, #1]",
                "cmp w9, #0x63",
                "b.ne 3f",
                "ldrb w9, [x1, #2]",
                "cmp w9, #0x63",
                "b.ne 3f",
                "ldrb w9, [x1, #3]",
                "cmp w9, #0x6c",
                "b.ne 3f",
                "b {driver}",
                "6:",
                "cmp w9, #0x69",
                "b.ne 3f",
                "ldrb w9, [x1, #1]",
                "cmp w9, #0x62",
                "b.ne 3f",
                "ldrb w9, [x1, #2]",
                "cmp w9, #0x76",
                "b.ne 3f",
                "ldrb w9, [x1, #3]",
                "cmp w9, #0x5f",
                "b.ne 3f",
                "b {driver}",
                "3:",
                "br x16",
                "4:",
                "stp x29, x30, [sp, #-48]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {find}",
                "ldr x2, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #48",
                "b 2b",
                real = sym $real,
                driver = sym $driver,
                find = sym find_loader,
            )
        }
    };
}
pub(super) use lookup;
