//! Host stacks as rows.

use super::Writer;
use streamsan_model::{Frame, FramePlace, Stack};

impl Writer {
    pub(super) fn put_frame(&mut self, frame: &Frame) {
        let id = Some(i64::from(frame.id.0));
        let [image, build_id, offset] = match &frame.place {
            FramePlace::Python => [None; 3],
            FramePlace::Native { image, build_id, offset } => {
                let image = Some(self.intern(image));
                let build_id = build_id.as_ref().map(|bytes| self.intern(&hex(bytes)));
                [image, build_id, Some(*offset as i64)]
            }
        };
        self.put(
            "INSERT OR REPLACE INTO frame VALUES (?, ?, ?, ?)",
            &[id, image, build_id, offset],
        );
        self.put("DELETE FROM frame_source WHERE frame = ?", &[id]);
        for (ordinal, source) in (0..).zip(&frame.source) {
            let function = self.intern_option(source.function.as_deref());
            let file = self.intern_option(source.file.as_deref());
            self.put(
                "INSERT INTO frame_source VALUES (?, ?, ?, ?, ?, ?)",
                &[
                    id,
                    Some(ordinal),
                    function,
                    file,
                    source.line.map(i64::from),
                    Some(i64::from(source.inlined)),
                ],
            );
        }
    }

    pub(super) fn put_stack(&mut self, stack: &Stack) {
        let id = Some(i64::from(stack.id.0));
        self.put("DELETE FROM stack WHERE id = ?", &[id]);
        let frames = stack.frames.iter().map(|frame| Some(i64::from(frame.0)));
        let more = stack.truncated.then_some(None);
        for (depth, frame) in (0..).zip(frames.chain(more)) {
            self.put("INSERT INTO stack VALUES (?, ?, ?)", &[id, Some(depth), frame]);
        }
    }
}

/// Two digits a byte.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
