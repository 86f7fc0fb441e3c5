//! The tutorial on plug-ins shows this plug-in, and its commands print what it shows.

#[path = "../../../cli/tests/tutorials/page.rs"]
mod page;

use std::path::Path;

fn tutorial() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials/4-your-congestion-control-in-rust.md")
}

#[test]
fn its_commands_print_what_it_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Path::new(env!("CARGO_BIN_EXE_ropewalk-example")).parent().expect("it is in a folder");
    page::run(&tutorial(), folder.path(), program, &["sh", "-c"]);
}

/// A block of Rust in the page is a part of the source.
#[test]
fn its_code_is_the_plug_ins() {
    let text = std::fs::read_to_string(tutorial()).expect("the page is there");
    let source = concat!(include_str!("../src/lib.rs"), include_str!("../src/main.rs"), include_str!("plugin.rs"));
    let blocks = page::blocks(&text);
    let rust: Vec<String> =
        blocks.iter().filter(|block| block.info == "rust").map(|block| block.lines.join("\n")).collect();
    assert!(rust.len() > 2);
    for block in rust {
        assert!(source.contains(&block), "this is not in the source:\n{block}");
    }
}
