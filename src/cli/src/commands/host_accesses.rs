//! What `run` says of the fences around host memory.

use streamsan_wire::FenceCounts;

/// How far raw loads and stores of the host were watched.
pub(crate) fn scope(counts: &FenceCounts) -> String {
    if let Some(reason) = counts.stopped {
        return format!("host accesses: not watched - {}", reason.description());
    }
    if counts.qualified == 0 {
        return "host accesses: watched - nothing used page-locked or managed memory asynchronously"
            .to_owned();
    }
    let mut words = format!(
        "host accesses: watched - {} of {} asynchronous operations on host memory fenced",
        counts.fenced, counts.qualified
    );
    if counts.partly > 0 {
        words += &format!(", {} of them in part", counts.partly);
    }
    match counts.left_alone {
        0 => {}
        1 => words += "; 1 allocation left alone, which the host touches all the time",
        more => {
            words +=
                &format!("; {more} allocations left alone, which the host touches all the time")
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use streamsan_wire::Unwatched;

    #[test]
    fn it_says_how_far_and_why_not() {
        let counts = FenceCounts { qualified: 7, fenced: 5, partly: 2, ..FenceCounts::default() };
        assert_eq!(
            scope(&counts),
            "host accesses: watched - 5 of 7 asynchronous operations on host memory fenced, 2 of them \
             in part"
        );
        let stopped = FenceCounts { stopped: Some(Unwatched::OwnHandler), ..counts };
        assert_eq!(
            scope(&stopped),
            "host accesses: not watched - the program handles SIGSEGV itself"
        );
        assert!(scope(&FenceCounts::default()).contains("nothing used"));
        let left = FenceCounts { left_alone: 2, ..counts };
        assert!(
            scope(&left).ends_with("2 allocations left alone, which the host touches all the time")
        );
    }
}
