//! `docs/schema.md`, made from the schema.

use super::{INDEXES, TABLES, VIEWS, enumerations};
use std::fmt::Write;

/// The text of `docs/schema.md`.
pub fn schema_document() -> String {
    let mut text = format!(
        "# Trace schema {}\n\n\
         Made from `src/store/src/schema`; `BLESS=1 cargo test -p streamsan-store` writes it \
         again.\n\n\
         A trace is one SQLite file. `application_id` is 0x5353414e (\"SSAN\"), `user_version` the \
         schema version. All\nids are plain integers, texts are ids in `string`, numbers of 64 bits \
         without a sign (addresses, handles,\nfingerprints) are stored as SQLite's signed ones of \
         the same bits. Times are host times: no\ncolumn holds a time of the GPU. Ranges are \
         half-open.\n",
        crate::SCHEMA_VERSION
    );
    text += "\n## Tables\n";
    for table in TABLES {
        let _ = write!(text, "\n### {}\n\n{}\n", table.name, table.doc);
        if let Some(key) = table.key {
            let _ = writeln!(text, "Primary key: ({key}).");
        }
        text += "\n| column | unit | meaning |\n|---|---|---|\n";
        for column in table.columns {
            let optional = !column.declaration.contains("NOT NULL")
                && !column.declaration.contains("PRIMARY KEY");
            let unit = column.unit.description();
            let null = if optional { ", or NULL" } else { "" };
            let _ = writeln!(text, "| `{}` | {unit}{null} | {} |", column.name, column.doc);
        }
    }
    text += "\n## Indexes\n\nMade when a trace is finished.\n\n| index | on |\n|---|---|\n";
    for index in INDEXES {
        let _ = writeln!(text, "| `{}` | `{}` |", index.name, index.on);
    }
    text += "\n## Views\n\nUnder the names of Nsight Systems' export, so that existing queries \
             work. Where a GPU `start` and `end` is\nexpected there is NULL. `globalTid` holds \
             the process in bits 24 to 47 and the thread below, `correlationId` is\n`op.g`.\n\n\
             | view | rows |\n|---|---|\n";
    for view in VIEWS {
        let _ = writeln!(text, "| `{}` | {} |", view.name, view.doc);
    }
    text += "\n## Codes\n\nThe table `enumeration` holds the same words.\n\n\
             | enumeration | codes |\n|---|---|\n";
    for (name, words) in enumerations() {
        let list: Vec<String> =
            words.iter().enumerate().map(|(code, word)| format!("{code} {word}")).collect();
        let _ = writeln!(text, "| {name} | {} |", list.join(", "));
    }
    text += "\n## Earlier schemas\n\nEvery version reads the traces of all earlier schemas as they are; \
             none is rewritten. Schema 7 has the\ntables of schema 6. It adds the modes `strong-read`, \
             `strong-write` and `strong-atomic`, and to `coverage` how far\nthe host's own loads and \
             stores were watched. In traces of schemas 1 to 6 every access is a weak one, and\nnothing \
             is told of host accesses. Schema 8 adds ranges and marks (`nvtx_range`), and to\n\
             `coverage` launches that touched bytes which their code was read not to touch; traces of schemas 1\n\
             to 7 have neither.\n";
    text
}
