//! `docs/keys.md` is made from the key table.

use std::fs;
use std::path::Path;
use streamsan_tui::keys_document;

#[test]
fn keys_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/keys.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, keys_document()).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == keys_document(),
        "docs/keys.md is stale; BLESS=1 cargo test -p streamsan-tui writes it again"
    );
}
