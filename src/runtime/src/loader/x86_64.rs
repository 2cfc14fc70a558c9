//! The look-up in front of the C library's, for x86-64. Arguments: rdi handle, rsi name, rdx version.

/// A function that looks at the name, and goes on to `$driver` or to what `$real` holds.
macro_rules! lookup {
    ($name:ident, $real:ident, $driver:ident) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "2:",
                "mov r11, [rip + {real}]",
                "test r11, r11",
                "jz 4f",
                // Handle: rdi, RTLD_DEFAULT is 0 and RTLD_NEXT -1. Name: rsi.
                "lea rax, [rdi + 1]",
                "cmp rax, 1",
                "jbe 3f",
                "test rsi, rsi",
                "jz 3f",
                "cmp byte ptr [rsi], 0x63",
                "jne 5f",
                "cmp byte ptr [rsi + 1], 0x75",
                "jne 3f",
                "movzx eax, byte ptr [rsi + 2]",
                "sub eax, 0x41",
                "cmp eax, 25",
                "ja 3f",
                "jmp {driver}",
                "5:",
                "cmp byte ptr [rsi], 0x6e",
                "jne 6f",
                "cmp byte ptr [rsi + 1], 0x63",
                "jne 3f",
                "cmp byte ptr [rsi + 2], 0x63",
                "jne 3f",
                "cmp byte ptr [rsi + 3], 0x6c",
                "jne 3f",
                "jmp {driver}",
                "6:",
                "cmp byte ptr [rsi], 0x69",
                "jne 3f",
                "cmp byte ptr [rsi + 1], 0x62",
                "jne 3f",
                "cmp byte ptr [rsi + 2], 0x76",
                "jne 3f",
                "cmp byte ptr [rsi + 3], 0x5f",
                "jne 3f",
                "jmp {driver}",
                "3:",
                "jmp r11",
                "4:",
                "push rdi",
                "push rsi",
                "push rdx",
                "call {find}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp 2b",
                real = sym $real,
                driver = sym $driver,
                find = sym find_loader,
            )
        }
    };
}
pub(super) use lookup;
