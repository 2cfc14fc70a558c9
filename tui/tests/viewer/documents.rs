//! `docs/keys.md` is made from the key table.

use std::path::Path;
use streamsan_testing::golden;
use streamsan_tui::keys_document;

#[test]
fn keys_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/keys.md");
    golden::check(&path, &keys_document());
}
