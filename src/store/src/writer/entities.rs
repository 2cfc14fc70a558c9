//! Entities.

use super::Writer;
use rusqlite::{ToSql, params};
use streamsan_model::Entity;

impl Writer {
    pub(super) fn put_entity(&mut self, entity: &Entity) -> rusqlite::Result<()> {
        self.begin()?;
        match entity {
            Entity::Process(x) => {
                let executable = self.intern(&x.executable)?;
                self.put("process", params![x.id.0, x.pid, x.parent_pid, executable])?;
                self.connection
                    .prepare_cached("DELETE FROM process_argument WHERE process = ?")?
                    .execute([x.id.0])?;
                for (ordinal, argument) in x.arguments.iter().enumerate() {
                    let value = self.intern(argument)?;
                    self.put("process_argument", params![x.id.0, ordinal as i64, value])?;
                }
                Ok(())
            }
            Entity::Thread(x) => self.put("thread", params![x.id.0, x.process.0, x.tid]),
            Entity::Context(x) => self.put(
                "context",
                params![x.id.0, x.process.0, x.device.0, x.primary, x.handle as i64],
            ),
            Entity::Stream(x) => {
                let name = self.intern_option(x.name.as_deref())?;
                self.put(
                    "stream",
                    params![
                        x.id.0,
                        x.context.0,
                        x.kind as i64,
                        x.thread.map(|t| t.0),
                        x.priority,
                        x.handle as i64,
                        x.driver_id as i64,
                        name
                    ],
                )
            }
            Entity::Event(x) => {
                let name = self.intern_option(x.name.as_deref())?;
                self.put("event", params![x.id.0, x.context.0, x.handle as i64, x.flags, name])
            }
            Entity::Allocation(x) => {
                let api = self.intern(&x.api)?;
                let name = self.intern_option(x.name.as_deref())?;
                self.put(
                    "allocation",
                    params![
                        x.id.0,
                        x.process.0,
                        x.context.map(|c| c.0),
                        x.kind as i64,
                        x.range.start as i64,
                        x.range.end.wrapping_sub(x.range.start) as i64,
                        api,
                        name
                    ],
                )
            }
            Entity::Kernel(x) => {
                let name = self.intern(&x.name)?;
                self.put("kernel", params![x.id.0, name, None::<i64>])?;
                self.connection
                    .prepare_cached("DELETE FROM kernel_param WHERE kernel = ?")?
                    .execute([x.id.0])?;
                for (ordinal, param) in x.params.iter().enumerate() {
                    self.put(
                        "kernel_param",
                        params![x.id.0, ordinal as i64, param.offset, param.size],
                    )?;
                }
                Ok(())
            }
        }
    }

    /// Inserts a whole row; a later declaration replaces the earlier one.
    fn put(&mut self, table: &str, row: &[&dyn ToSql]) -> rusqlite::Result<()> {
        let marks = vec!["?"; row.len()].join(", ");
        self.connection
            .prepare_cached(&format!("INSERT OR REPLACE INTO {table} VALUES ({marks})"))?
            .execute(row)
            .map(drop)
    }
}
