//! Failures that a test asks for: a step of writing or reading answers as a full disk does.
//!
//! Every step of the writer's thread and every question of a reader passes a point. Without the
//! feature `failures`, which only tests have, a point compiles to nothing.

#[cfg(feature = "failures")]
use std::{
    cell::RefCell,
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
};

#[cfg(feature = "failures")]
#[derive(Debug)]
struct Plan {
    /// Points that were passed.
    passed: AtomicU64,
    /// The first one that fails, and how many.
    first: u64,
    count: u64,
}

#[cfg(feature = "failures")]
thread_local! {
    static PLAN: RefCell<Option<Arc<Plan>>> = const { RefCell::new(None) };
}

/// The failures for the writers and readers that this thread makes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    #[cfg(feature = "failures")]
    plan: Option<Arc<Plan>>,
}

impl Failures {
    pub(crate) fn of_this_thread() -> Self {
        Self {
            #[cfg(feature = "failures")]
            plan: PLAN.with_borrow(Clone::clone),
        }
    }

    /// A step begins.
    pub(crate) fn point(&self) -> rusqlite::Result<()> {
        #[cfg(feature = "failures")]
        if let Some(plan) = &self.plan {
            let passed = plan.passed.fetch_add(1, Ordering::Relaxed);
            if passed >= plan.first && passed - plan.first < plan.count {
                let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
                return Err(rusqlite::Error::SqliteFailure(full, None));
            }
        }
        Ok(())
    }
}

/// Until this is dropped, `count` steps that are asked for by this thread fail, from step `first` on.
#[cfg(feature = "failures")]
#[derive(Debug)]
pub struct FailingSteps(Arc<Plan>);

#[cfg(feature = "failures")]
impl FailingSteps {
    pub fn new(first: u64, count: u64) -> Self {
        let plan = Arc::new(Plan { passed: AtomicU64::new(0), first, count });
        PLAN.set(Some(plan.clone()));
        Self(plan)
    }

    /// Whether the first of the failing points was reached.
    pub fn is_reached(&self) -> bool {
        self.0.passed.load(Ordering::Relaxed) > self.0.first
    }
}

#[cfg(feature = "failures")]
impl Drop for FailingSteps {
    fn drop(&mut self) {
        PLAN.set(None);
    }
}
