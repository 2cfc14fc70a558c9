mod shop {
    pub trait Add {
        fn add(&self);
    }
    pub struct Counter<T>(pub T);
    impl<T> Add for Counter<T> {
        #[inline(never)]
        fn add(&self) {
            // SAFETY: the function takes nothing and only prints.
            unsafe { super::tell_stack() };
            std::hint::black_box(self as *const _);
        }
    }
}

unsafe extern "C" {
    fn tell_stack();
}

fn main() {
    use shop::Add;
    shop::Counter(7_u64).add();
    std::hint::black_box(());
}
