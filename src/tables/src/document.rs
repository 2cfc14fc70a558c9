//! The description of the tables for users.

use crate::Table;
use std::fmt::Write;

const HEAD: &str = "\
# Tables of traces

Made from `src/tables/src/catalogue.rs`; `BLESS=1 cargo test -p streamsan-tables` writes it again.

`streamsan export --format parquet -o DIR` writes these tables; [fleet.md](fleet.md) shows how they are
asked. A table is a directory of Parquet files, with a directory for each trace:
`DIR/operations/trace=rank-0/part-0.parquet`. What stands behind `trace=` is a column of every table, as
engines read such directories, and no column of the files. It is the name of the trace's file, below the
directory that all exported files are in and without its extension; what is no ASCII letter, digit, `-`,
`_` or `.` becomes `_`, a name that could be taken for a number or a date gets `trace-` in front, and a
name that is taken gets a number behind.

Ids are those of one trace: tables of one trace are joined by `trace` and the id. Only `id` of `findings`
is the same in every trace. An *integer* has 64 bits and a sign, an *unsigned* number 64 bits and none; a
*text* is UTF-8, as the trace has it; a *flag* is a boolean. Files are compressed by Snappy, in groups of at
most 65,536 rows.

";

/// The description of all tables in Markdown; a test holds the document against it.
pub fn tables_document() -> String {
    let mut text = HEAD.to_owned();
    for table in Table::ALL {
        let _ = writeln!(text, "### {}\n\n{}\n", table.name(), table.meaning());
        text += "| column | type | meaning |\n|---|---|---|\n";
        for column in table.columns() {
            let null = if column.nullable { ", or null" } else { "" };
            let kind = column.kind.description();
            let _ = writeln!(text, "| `{}` | {kind}{null} | {} |", column.name, column.meaning);
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::tables_document;
    use crate::Table;

    #[test]
    fn tables_have_their_numbers_and_columns_their_own_names() {
        for (number, table) in Table::ALL.into_iter().enumerate() {
            assert_eq!(table as usize, number);
            let mut names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns().len(), "{}", table.name());
            assert!(!names.contains(&"trace"), "the path says it");
        }
        assert!(tables_document().contains("| `op` | integer | "));
    }
}
