//! The reference page stays true: its examples parse, and its tables name all verbs.

use streamsan_text::parse;

const PAGE: &str = include_str!("../../../../docs/trace-text.md");

#[test]
fn the_first_example_parses() {
    let block = PAGE.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let trace = parse(block.expect("the page begins with an example")).expect("it parses");
    assert_eq!(trace.expectations.len(), 1);
}

#[test]
fn verbs_of_the_tables_are_known() {
    let calls = PAGE.split("## Calls").nth(1).expect("a section on calls");
    let calls = calls.split("### Options of every call").next().unwrap_or_default();
    let mut verbs = 0;
    let mut before = "";
    for row in calls.lines() {
        // The bodies of nodes have a table of their own.
        if row.starts_with("| line |") {
            before = "";
        } else if row.starts_with("| body |") {
            before = "graph G\nnode G n ";
        }
        let Some(cell) = row.split('|').nth(1).filter(|_| row.starts_with("| `")) else { continue };
        for line in cell.split('`').skip(1).step_by(2) {
            let verb = line.split(' ').next().unwrap_or_default();
            // Most verbs need operands; what matters is that the verb itself is taken.
            if let Err(error) = parse(&format!("{before}{verb}")) {
                let message = error.message;
                let is_known = !message.contains("a verb such as");
                assert!(is_known && !message.contains("what the node does"), "{verb}: {message}");
            }
            verbs += 1;
        }
    }
    assert!(verbs > 100, "{verbs}");
}
