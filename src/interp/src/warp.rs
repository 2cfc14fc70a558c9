//! Operations in which threads of a warp meet: shuffles, votes, matches and reductions.

use crate::code::{Code, Op, WarpKind};
use crate::thread::{State, Thread};

/// One lane's part in a meeting.
#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    a: u64,
    b: u32,
    c: u32,
    d: u64,
    p: u64,
}

/// Lets every complete group of waiting threads go on. Returns whether there was one.
///
/// With a member mask a group is complete when all its threads that have not exited wait at the
/// same kind of operation with the same mask (PTX ISA, `shfl.sync`). Without one (the forms before
/// `.sync`, and `activemask`) the group is whoever waits at the same instruction once every thread
/// of the warp has had its turn.
pub(crate) fn meet(warp: &mut [Thread], functions: &[Code]) -> bool {
    let mut done = 0u32;
    let mut met = false;
    let live = lanes(warp, |t| t.state != State::Exited);
    for first in 0..warp.len() {
        if done >> first & 1 == 1 || warp[first].state != State::Warp {
            continue;
        }
        let Some((kind, mask)) = operation(&warp[first], functions) else { continue };
        let group = match mask {
            Some(mask) => {
                let members = (mask | 1 << first) & live;
                let same = |t: &Thread| {
                    t.state == State::Warp && operation(t, functions) == Some((kind, Some(mask)))
                };
                let group = lanes(warp, same) & members;
                if group != members {
                    continue;
                }
                group
            }
            None => {
                let at = (warp[first].function, warp[first].pc);
                lanes(warp, |t| t.state == State::Warp && (t.function, t.pc) == at)
            }
        };
        done |= group;
        met = true;
        exchange(warp, functions, kind, group);
    }
    met
}

fn lanes(warp: &[Thread], f: impl Fn(&Thread) -> bool) -> u32 {
    warp.iter().enumerate().fold(0, |mask, (lane, t)| mask | u32::from(f(t)) << lane)
}

/// Kind and mask of the operation a thread waits at.
fn operation(thread: &Thread, functions: &[Code]) -> Option<(WarpKind, Option<u32>)> {
    match functions[thread.function as usize].ops[thread.pc as usize] {
        Op::Warp { kind, mask, .. } => Some((kind, mask.map(|slot| thread.register(slot) as u32))),
        _ => None,
    }
}

fn exchange(warp: &mut [Thread], functions: &[Code], kind: WarpKind, group: u32) {
    let mut lanes = [Lane::default(); 32];
    let members = || (0..32usize).filter(move |lane| group >> lane & 1 == 1);
    for lane in members() {
        let thread = &warp[lane];
        if let Op::Warp { a, b, c, .. } =
            functions[thread.function as usize].ops[thread.pc as usize]
        {
            lanes[lane] = Lane {
                a: thread.register(a),
                b: thread.register(b) as u32,
                c: thread.register(c) as u32,
                ..Lane::default()
            };
        }
    }
    compute(&mut lanes, kind, group);
    for lane in members() {
        let thread = &mut warp[lane];
        if let Op::Warp { d, p, .. } = functions[thread.function as usize].ops[thread.pc as usize] {
            thread.set_register(p, lanes[lane].p);
            thread.set_register(d, lanes[lane].d);
        }
        thread.pc += 1;
        thread.state = State::Ready;
    }
}

fn compute(lanes: &mut [Lane; 32], kind: WarpKind, group: u32) {
    let members = || (0..32usize).filter(move |lane| group >> lane & 1 == 1);
    let votes = members().fold(0u32, |mask, lane| mask | (lanes[lane].a as u32 & 1) << lane);
    let values = *lanes;
    for lane in members() {
        let value = values[lane].a;
        let (d, p) = match kind {
            WarpKind::ShuffleUp
            | WarpKind::ShuffleDown
            | WarpKind::ShuffleButterfly
            | WarpKind::ShuffleIndex => shuffle(&values, kind, group, lane as u32),
            WarpKind::VoteAll => (u64::from(votes == group), 0),
            WarpKind::VoteAny => (u64::from(votes != 0), 0),
            WarpKind::VoteUniform => (u64::from(votes == 0 || votes == group), 0),
            WarpKind::VoteBallot => (u64::from(votes), 0),
            WarpKind::MatchAny => {
                let same = members().filter(|&other| values[other].a == value);
                (u64::from(same.fold(0u32, |mask, other| mask | 1 << other)), 0)
            }
            WarpKind::MatchAll => {
                let all = members().all(|other| values[other].a == value);
                (if all { u64::from(group) } else { 0 }, u64::from(all))
            }
            WarpKind::Barrier => (0, 0),
            WarpKind::ActiveMask => (u64::from(group), 0),
            WarpKind::Elect => {
                let leader = group.trailing_zeros();
                (u64::from(leader), u64::from(leader == lane as u32))
            }
            reduction => (u64::from(reduce(reduction, members().map(|l| values[l].a as u32))), 0),
        };
        (lanes[lane].d, lanes[lane].p) = (d, p);
    }
}

fn reduce(kind: WarpKind, values: impl Iterator<Item = u32>) -> u32 {
    let f: fn(u32, u32) -> u32 = match kind {
        WarpKind::ReduceAdd => u32::wrapping_add,
        WarpKind::ReduceMinUnsigned => |a, b| a.min(b),
        WarpKind::ReduceMaxUnsigned => |a, b| a.max(b),
        WarpKind::ReduceMinSigned => |a, b| (a as i32).min(b as i32) as u32,
        WarpKind::ReduceMaxSigned => |a, b| (a as i32).max(b as i32) as u32,
        WarpKind::ReduceAnd => |a, b| a & b,
        WarpKind::ReduceOr => |a, b| a | b,
        _ => |a, b| a ^ b,
    };
    values.reduce(f).unwrap_or(0)
}

/// PTX ISA, `shfl.sync`: value and predicate of one lane. A lane that would read from a thread
/// that is not there keeps its own value (the manual leaves it undefined).
fn shuffle(values: &[Lane; 32], kind: WarpKind, group: u32, lane: u32) -> (u64, u64) {
    let Lane { a, b, c, .. } = values[lane as usize];
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let limit = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    let (source, inside) = match kind {
        WarpKind::ShuffleUp => {
            let source = i64::from(lane) - i64::from(b);
            (source.max(0) as u32, source >= i64::from(limit))
        }
        WarpKind::ShuffleDown => (lane + b, lane + b <= limit),
        WarpKind::ShuffleButterfly => (lane ^ b, lane ^ b <= limit),
        _ => {
            let source = least | (b & !segment);
            (source, source <= limit)
        }
    };
    let source = if inside { source & 31 } else { lane };
    let present = group >> source & 1 == 1;
    (if present { values[source as usize].a } else { a }, u64::from(inside))
}
