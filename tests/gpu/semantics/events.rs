//! Events.

use crate::Check;
use crate::lab::{Failure, Lab, MIDDLE, ok};
use cudarc::driver::sys::{self, CUevent};
use std::ffi::{CString, c_void};
use std::ptr;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "stream that waits for an event",
        documented: "ordered",
        trial: |lab| {
            let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
            lab.hold(a)?;
            lab.record(event, a)?;
            lab.wait(b, event)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "stream that waits for an event recorded before the work",
        documented: "not ordered",
        trial: |lab| {
            let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
            lab.record(event, a)?;
            lab.hold(a)?;
            lab.wait(b, event)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "stream that waits for an event never recorded",
        documented: "not ordered",
        trial: |lab| {
            let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
            lab.hold(a)?;
            lab.wait(b, event)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "wait, then the event recorded again on an idle stream",
        documented: "ordered: the version at the call counts",
        trial: |lab| {
            let (a, b, c) = (lab.nonblocking()?, lab.nonblocking()?, lab.nonblocking()?);
            let event = lab.event()?;
            lab.hold(a)?;
            lab.record(event, a)?;
            lab.wait(b, event)?;
            lab.record(event, c)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "event recorded again on an idle stream, then the wait",
        documented: "not ordered",
        trial: |lab| {
            let (a, b, c) = (lab.nonblocking()?, lab.nonblocking()?, lab.nonblocking()?);
            let event = lab.event()?;
            lab.hold(a)?;
            lab.record(event, a)?;
            lab.record(event, c)?;
            lab.wait(b, event)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "wait for an event that is destroyed at once",
        documented: "ordered",
        trial: |lab| {
            let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
            let mut event = std::ptr::null_mut();
            lab.hold(a)?;
            // SAFETY: the pointer leads to a local variable; the event is destroyed once.
            unsafe {
                ok(sys::cuEventCreate(&raw mut event, 2))?;
                lab.record(event, a)?;
                lab.wait(b, event)?;
                ok(sys::cuEventDestroy_v2(event))?;
            }
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "`cuEventSynchronize` returns behind what was recorded",
        documented: "waits",
        trial: |lab| {
            let (a, event) = (lab.nonblocking()?, lab.event()?);
            lab.hold(a)?;
            lab.record(event, a)?;
            // SAFETY: the event is alive.
            ok(unsafe { sys::cuEventSynchronize(event) })?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "`cuEventRecord` returns behind its stream's work",
        documented: "does not wait",
        trial: |lab| {
            let (a, event) = (lab.nonblocking()?, lab.event()?);
            lab.hold(a)?;
            lab.record(event, a)?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "stream that waits for an event of the whole context (`cuCtxRecordEvent`)",
        documented: "ordered",
        trial: |lab| {
            let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
            lab.hold(a)?;
            // SAFETY: both are alive.
            ok(unsafe { of_context("cuCtxRecordEvent")?(lab.context, event) })?;
            lab.wait(b, event)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "any stream after the context waits for an event (`cuCtxWaitEvent`)",
        documented: "ordered",
        trial: |lab| {
            let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
            lab.hold(a)?;
            lab.record(event, a)?;
            // SAFETY: both are alive.
            ok(unsafe { of_context("cuCtxWaitEvent")?(lab.context, event) })?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "launch completion event of a kernel that runs on",
        documented: "not ordered",
        trial: |lab| event_of_launch(lab, true),
    },
    Check {
        name: "programmatic event of a kernel that triggers and runs on",
        documented: "not ordered",
        trial: |lab| event_of_launch(lab, false),
    },
];

/// A call on a context and an event, of CUDA 12.5 and later.
fn of_context(
    name: &str,
) -> Result<unsafe extern "C" fn(sys::CUcontext, CUevent) -> sys::CUresult, Failure> {
    let name = CString::new(name).expect("no NUL in a name");
    let mut address = ptr::null_mut();
    // SAFETY: the pointers lead to local variables.
    ok(unsafe {
        sys::cuGetProcAddress_v2(name.as_ptr(), &raw mut address, 12050, 0, ptr::null_mut())
    })?;
    if address.is_null() {
        return Err(Failure("this driver does not have the call".to_owned()));
    }
    // SAFETY: the driver API says that both calls have this signature.
    Ok(unsafe {
        std::mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(sys::CUcontext, CUevent) -> sys::CUresult,
        >(address)
    })
}

/// A kernel that records an event by attribute, and a stream that waits for it.
fn event_of_launch(lab: &mut Lab, completion: bool) -> Result<bool, Failure> {
    use sys::CUlaunchAttributeID as Id;
    let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
    // SAFETY: all zeroes is a value of this plain structure of C.
    let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
    if completion {
        attribute.id = Id::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
        attribute.value.launchCompletionEvent.event = event;
    } else {
        attribute.id = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
        attribute.value.programmaticEvent.event = event;
    }
    let arguments = [crate::lab::HOLD.as_nanos() as u64, lab.address(crate::lab::END)];
    lab.launch_with(lab.kernels.trigger_and_hold, a, &arguments, &mut [attribute])?;
    lab.wait(b, event)?;
    lab.mark(b)?;
    let answer = lab.mark_waits();
    lab.write(MIDDLE, 0);
    answer
}
