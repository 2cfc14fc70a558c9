//! The shapes.

use super::Program;
use streamsan_model::{Access, Basis, Mode, StreamKind};

const BUFFER: u64 = 1 << 20;

/// Stream 0 writes a buffer that all others read, each into a buffer of its own, which stream 0
/// reads again once it has joined them.
pub(crate) fn fork_join(streams: u32, operations: u32, synchronised: bool) -> Program {
    let mut program = Program::new(streams + 1, (0..=streams).map(|_| BUFFER));
    while !program.has(operations) {
        program.launch(0, vec![program.whole(0, Mode::Write)]);
        program.record(0);
        for worker in 1..=streams {
            program.wait(worker, 0);
            let accesses = vec![program.whole(0, Mode::Read), program.whole(worker, Mode::Write)];
            program.launch(worker, accesses);
            program.record(worker);
        }
        for worker in 1..=streams {
            program.wait(0, worker);
        }
        program.launch(0, vec![program.whole(1, Mode::Read), program.whole(streams, Mode::Read)]);
        // The workers may write again only behind this read; the next fork's record says so.
        if synchronised {
            program.synchronize();
        }
    }
    program
}

/// Each stream computes its part from the former state of itself and its two neighbours. Two
/// buffers a stream take turns.
pub(crate) fn halo_ring(streams: u32, operations: u32) -> Program {
    let mut program = Program::new(streams, (0..2 * streams).map(|_| BUFFER));
    let mut step = 0;
    while !program.has(operations) {
        let (old, new) = (step % 2, (step + 1) % 2);
        for stream in 0..streams {
            let (left, right) = ((stream + streams - 1) % streams, (stream + 1) % streams);
            if step > 0 {
                program.wait(stream, left);
                program.wait(stream, right);
            }
            program.launch(
                stream,
                vec![
                    program.whole(2 * left + old, Mode::Read),
                    program.whole(2 * stream + old, Mode::Read),
                    program.whole(2 * right + old, Mode::Read),
                    program.whole(2 * stream + new, Mode::Write),
                ],
            );
        }
        // Behind all waits of the step, which are for the step before.
        for stream in 0..streams {
            program.record(stream);
        }
        step += 1;
    }
    program
}

/// Any stream waits for any other, then writes its own buffer.
pub(crate) fn random_waits(streams: u32, operations: u32) -> Program {
    let mut program = Program::new(streams, (0..streams).map(|_| BUFFER));
    let mut random = Random::default();
    while !program.has(operations) {
        let (stream, other) = (random.below(streams.into()), random.below(streams.into()));
        program.wait(stream as u32, other as u32);
        program.launch(stream as u32, vec![program.whole(stream as u32, Mode::Write)]);
        program.record(stream as u32);
    }
    program
}

/// Copies from one place of ordinary host memory to many buffers, in the legacy stream; the context
/// is synchronised after every round.
pub(crate) fn copies(buffers: u32, operations: u32) -> Program {
    let mut program = Program::new(0, (0..buffers).map(|_| BUFFER));
    let pageable = program.pageable();
    program.create(0, StreamKind::Legacy);
    while !program.has(operations) {
        for buffer in 0..buffers {
            program.copy(0, pageable, buffer);
        }
        program.synchronize();
    }
    program
}

/// The same in so many streams side by side, which all write all buffers.
pub(crate) fn racy_copies(streams: u32, buffers: u32, operations: u32) -> Program {
    let mut program = Program::new(streams, (0..buffers).map(|_| BUFFER));
    let pageable = program.pageable();
    while !program.has(operations) {
        for stream in 0..streams {
            for buffer in 0..buffers {
                program.copy(stream, pageable, buffer);
            }
        }
        program.synchronize();
    }
    program
}

/// How the program waits for streams before it destroys them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Synchronised,
    /// Nobody waits for them until the end of the program.
    Left,
}

/// Streams are created, copy from one place of ordinary host memory to a buffer for each of eight
/// streams that take turns, and are destroyed.
pub(crate) fn short_lived(streams: u32, copies: u32, end: End) -> Program {
    let together = 8;
    let mut program = Program::new(0, (0..together * copies).map(|_| BUFFER));
    let pageable = program.pageable();
    let kind = match end {
        End::Synchronised => StreamKind::Blocking,
        End::Left => StreamKind::NonBlocking,
    };
    for first in (0..streams).step_by(together as usize) {
        let round = first..first + together;
        for stream in round.clone() {
            program.create(stream, kind);
            for copy in 0..copies {
                let buffer = stream % together * copies + copy;
                match end {
                    End::Synchronised => program.copy(stream, pageable, buffer),
                    End::Left => program.launch(stream, vec![program.whole(0, Mode::Read)]),
                }
            }
        }
        for stream in round {
            if end == End::Synchronised {
                program.synchronize_stream(stream);
            }
            program.destroy(stream);
        }
    }
    program.synchronize();
    program
}

/// An allocator of the program's own hands out 4 KiB to 1 MiB of a 4 GiB arena, to streams that
/// take turns.
pub(crate) fn arena(streams: u32, operations: u32) -> Program {
    const PAGE: u64 = 4 << 10;
    let arena = 4 << 30;
    let mut program = Program::new(streams, [arena]);
    let mut random = Random::default();
    let mut before = 0;
    while !program.has(operations) {
        let stream = random.below(streams.into()) as u32;
        let bytes = (random.below(256) + 1) * PAGE;
        let offset = random.below((arena - bytes) / PAGE) * PAGE;
        let mode = if random.below(2) == 0 { Mode::Read } else { Mode::Write };
        program.wait(stream, before);
        program.launch(stream, vec![program.part(0, offset, bytes, mode)]);
        program.record(stream);
        before = stream;
    }
    program
}

const POOL: u64 = 20 << 20;
const TENSORS: u64 = 160;

/// A framework's pool: tensors of 4 to 256 KiB in allocations of 20 MiB, the same ones in every step.
/// A launch reads two and writes one. Of every third tensor the bytes are known, of the others where
/// they begin. Streams take turns by steps, each behind the one before.
pub(crate) fn pool(streams: u32, operations: u32) -> Program {
    const LAUNCHES: u32 = 700;
    let mut program = Program::new(streams, [POOL; 3]);
    let mut random = Random::default();
    let tensors = tensors(&mut random);
    let mut step = 0;
    while !program.has(operations) {
        let (stream, before) = (step % streams, (step + streams - 1) % streams);
        program.wait(stream, before);
        let mut random = Random::default();
        for _ in 0..LAUNCHES {
            launch_on_tensors(&mut program, stream, &mut random, &tensors, 3);
        }
        program.record(stream);
        step += 1;
    }
    program
}

/// Streams work on the same pool by turns, and wait for all others after every so many launches only.
pub(crate) fn racy_pool(streams: u32, launches: u32, operations: u32) -> Program {
    let mut program = Program::new(streams, [POOL]);
    let mut random = Random::default();
    let tensors = tensors(&mut random);
    while !program.has(operations) {
        for launch in 0..launches {
            launch_on_tensors(&mut program, launch % streams, &mut random, &tensors, 1);
        }
        for stream in 1..streams {
            program.record(stream);
            program.wait(0, stream);
        }
        program.record(0);
        for stream in 1..streams {
            program.wait(stream, 0);
        }
    }
    program
}

/// Offsets and sizes.
fn tensors(random: &mut Random) -> Vec<(u64, u64)> {
    let offset = |at: u64| (at * (POOL / TENSORS)) & !511;
    (0..TENSORS).map(|at| (offset(at), (random.below(64) + 1) << 11)).collect()
}

/// Reads two tensors and writes one.
fn launch_on_tensors(
    program: &mut Program,
    stream: u32,
    random: &mut Random,
    tensors: &[(u64, u64)],
    buffers: u64,
) {
    let mut accesses = Vec::new();
    for mode in [Mode::Read, Mode::Read, Mode::Write] {
        let (buffer, tensor) = (random.below(buffers) as u32, random.below(TENSORS));
        let (offset, bytes) = tensors[tensor as usize];
        if tensor % 3 == 0 {
            accesses.push(program.part(buffer, offset, bytes, mode));
        } else {
            let (above, below) = (Basis::Anchored, Basis::Assumed);
            let rest = program.part(buffer, offset, POOL - offset, mode);
            accesses.push(Access { basis: above, ..rest });
            if offset > 0 {
                let rest = program.part(buffer, 0, offset, mode);
                accesses.push(Access { basis: below, ..rest });
            }
        }
    }
    program.launch(stream, accesses);
}

/// The same numbers in every run: xorshift64*.
struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }
}
