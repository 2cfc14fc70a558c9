//! Entities as rows. A later declaration replaces the earlier one.

use super::Writer;
use streamsan_model::{Entity, KernelCode, Mode};

fn id(number: u32) -> Option<i64> {
    Some(i64::from(number))
}

fn bits(number: u64) -> Option<i64> {
    Some(number as i64)
}

impl Writer {
    pub(super) fn put_entity(&mut self, entity: &Entity) {
        match entity {
            Entity::Process(x) => {
                let executable = self.intern(&x.executable);
                self.put(
                    "INSERT OR REPLACE INTO process VALUES (?, ?, ?, ?)",
                    &[id(x.id.0), id(x.pid), id(x.parent_pid), Some(executable)],
                );
                self.put("DELETE FROM process_argument WHERE process = ?", &[id(x.id.0)]);
                for (ordinal, argument) in x.arguments.iter().enumerate() {
                    let value = self.intern(argument);
                    self.put(
                        "INSERT INTO process_argument VALUES (?, ?, ?)",
                        &[id(x.id.0), Some(ordinal as i64), Some(value)],
                    );
                }
            }
            Entity::Thread(x) => self.put(
                "INSERT OR REPLACE INTO thread VALUES (?, ?, ?)",
                &[id(x.id.0), id(x.process.0), id(x.tid)],
            ),
            Entity::Context(x) => self.put(
                "INSERT OR REPLACE INTO context VALUES (?, ?, ?, ?, ?, ?, ?)",
                &[
                    id(x.id.0),
                    id(x.process.0),
                    id(x.device.0),
                    Some(i64::from(x.primary)),
                    bits(x.handle),
                    x.parent.and_then(|c| id(c.0)),
                    Some(i64::from(x.concurrent_managed_access)),
                ],
            ),
            Entity::Stream(x) => {
                let name = self.intern_option(x.name.as_deref());
                self.put(
                    "INSERT OR REPLACE INTO stream VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    &[
                        id(x.id.0),
                        id(x.context.0),
                        Some(x.kind as i64),
                        x.thread.and_then(|t| id(t.0)),
                        Some(i64::from(x.priority)),
                        bits(x.handle),
                        bits(x.driver_id),
                        name,
                    ],
                );
            }
            Entity::Event(x) => {
                let name = self.intern_option(x.name.as_deref());
                self.put(
                    "INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?)",
                    &[
                        id(x.id.0),
                        id(x.context.0),
                        bits(x.handle),
                        id(x.flags),
                        name,
                        Some(i64::from(x.imported)),
                    ],
                );
            }
            Entity::Allocation(x) => {
                let api = self.intern(&x.api);
                let name = self.intern_option(x.name.as_deref());
                self.put(
                    "INSERT OR REPLACE INTO allocation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    &[
                        id(x.id.0),
                        id(x.process.0),
                        x.context.and_then(|c| id(c.0)),
                        Some(x.kind as i64),
                        bits(x.range.start),
                        bits(x.range.end.wrapping_sub(x.range.start)),
                        Some(api),
                        name,
                        x.backing.and_then(|b| id(b.memory.0)),
                        x.backing.and_then(|b| bits(b.offset)),
                        x.stack.and_then(|stack| id(stack.0)),
                    ],
                );
            }
            Entity::Graph(x) => self.put_graph(x),
            Entity::Module(x) => {
                let path = self.intern_option(x.path.as_deref());
                self.put(
                    "INSERT OR REPLACE INTO module VALUES (?, ?, ?, ?, ?, ?)",
                    &[
                        id(x.id.0),
                        id(x.process.0),
                        x.hash.and_then(bits),
                        bits(x.size),
                        path,
                        bits(x.offset),
                    ],
                );
            }
            Entity::KernelCode(x) => self.put_kernel_code(x),
            Entity::Frame(x) => self.put_frame(x),
            Entity::Stack(x) => self.put_stack(x),
            Entity::Kernel(x) => {
                let name = self.intern(&x.name);
                self.put("INSERT OR REPLACE INTO kernel VALUES (?, ?)", &[id(x.id.0), Some(name)]);
                self.put("DELETE FROM kernel_param WHERE kernel = ?", &[id(x.id.0)]);
                for (ordinal, param) in x.params.iter().enumerate() {
                    self.put(
                        "INSERT INTO kernel_param VALUES (?, ?, ?, ?)",
                        &[id(x.id.0), Some(ordinal as i64), id(param.offset), id(param.size)],
                    );
                }
            }
        }
    }

    fn put_kernel_code(&mut self, code: &KernelCode) {
        let kernel = id(code.kernel.0);
        let mode = |mode: Option<Mode>| mode.map(|mode| mode as i64);
        let reason = (!code.reason.is_empty()).then(|| self.intern(&code.reason));
        self.put(
            "INSERT OR REPLACE INTO kernel_code VALUES (?, ?, ?, ?, ?)",
            &[
                kernel,
                code.module.and_then(|module| id(module.0)),
                Some(code.source as i64),
                reason,
                Some(i64::from(code.waits_on_primary)),
            ],
        );
        self.put("DELETE FROM kernel_word WHERE kernel = ?", &[kernel]);
        for (ordinal, word) in (0..).zip(&code.words) {
            self.put(
                "INSERT INTO kernel_word VALUES (?, ?, ?, ?, ?, ?, ?)",
                &[
                    kernel,
                    Some(ordinal),
                    id(word.param),
                    id(word.offset),
                    Some(word.kind as i64),
                    mode(word.mode),
                    Some(i64::from(word.table)),
                ],
            );
        }
        self.put("DELETE FROM kernel_global WHERE kernel = ?", &[kernel]);
        for (ordinal, global) in (0..).zip(&code.globals) {
            let name = self.intern(&global.name);
            self.put(
                "INSERT INTO kernel_global VALUES (?, ?, ?, ?, ?)",
                &[
                    kernel,
                    Some(ordinal),
                    Some(name),
                    mode(global.mode),
                    Some(i64::from(global.table)),
                ],
            );
        }
    }
}
