//! Calls counted by their names in a row, so that those of two runs of a program can be matched.

use crate::query::signed;
use crate::{Error, Reader};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use std::sync::Arc;
use streamsan_model::{CallNumber, LaneId, OpSeq};

impl Reader {
    /// Which of the calls of its name in its row an operation is.
    pub(crate) fn number_of_call(&self, g: OpSeq) -> Result<Option<CallNumber>, Error> {
        let sql = "SELECT op.stream, op.thread, kernel.name, COALESCE(name.value, api.value) FROM op \
                   LEFT JOIN kernel ON kernel.id = op.kernel \
                   LEFT JOIN string name ON name.id = kernel.name \
                   JOIN string api ON api.id = op.api WHERE op.g = ?";
        let call = |row: &Row<'_>| {
            let lane = match row.get::<_, Option<u32>>(0)? {
                Some(stream) => LaneId::Stream(streamsan_model::StreamId(stream)),
                None => LaneId::Host(streamsan_model::ThreadId(row.get(1)?)),
            };
            let name: Arc<str> = row.get(3)?;
            let is_kernel = row.get::<_, Option<i64>>(2)?.is_some();
            Ok((lane, CallNumber { name, is_kernel, number: 0 }))
        };
        let Some((lane, call)) = self.rows(sql, [signed(g)], call)?.pop() else { return Ok(None) };
        let (condition, mut values) = of_name(lane, &call);
        values.push(signed(g).into());
        let sql = format!("SELECT count(*) FROM op WHERE {condition} AND g <= ?");
        let count = self.rows(&sql, params_from_iter(values), |row| row.get::<_, i64>(0))?;
        Ok(Some(CallNumber { number: count.first().map_or(0, |&count| count as u64), ..call }))
    }

    /// The call of a row with a name and a number.
    pub(crate) fn numbered_call(
        &self,
        lane: LaneId,
        call: &CallNumber,
    ) -> Result<Option<OpSeq>, Error> {
        let Some(before) = call.number.checked_sub(1) else { return Ok(None) };
        let (condition, mut values) = of_name(lane, call);
        values.push(i64::try_from(before).unwrap_or(i64::MAX).into());
        let sql = format!("SELECT g FROM op WHERE {condition} ORDER BY g LIMIT 1 OFFSET ?");
        let found = self.rows(&sql, params_from_iter(values), |row| row.get::<_, i64>(0))?;
        Ok(found.first().map(|&g| OpSeq(g as u64)))
    }
}

/// The calls of a name in a row, as a condition on `op`.
fn of_name(lane: LaneId, call: &CallNumber) -> (String, Vec<Value>) {
    let (row, id) = match lane {
        LaneId::Host(thread) => ("stream IS NULL AND thread = ?", thread.0),
        LaneId::Stream(stream) => ("stream = ?", stream.0),
    };
    let text = "(SELECT id FROM string WHERE value = ?)";
    let name = match call.is_kernel {
        true => format!("kernel IN (SELECT id FROM kernel WHERE name IN {text})"),
        false => format!("kernel IS NULL AND api IN {text}"),
    };
    let values = vec![i64::from(id).into(), Value::Text(call.name.to_string())];
    (format!("{row} AND {name}"), values)
}
