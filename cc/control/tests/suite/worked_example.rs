//! The example of docs/how-to/write-an-algorithm.md, compiled and tested.

use crate::equal_shares::{ENTRY, EqualShares};
use ropewalk_control::common::{Coupling, SubflowGroup, SubflowView};

#[test]
fn the_page_quotes_the_file() {
    let page = include_str!("../../../../docs/how-to/write-an-algorithm.md");
    let quoted = format!("```rust\n{}```\n", include_str!("equal_shares.rs"));
    assert!(page.contains(&quoted), "docs/how-to/write-an-algorithm.md shows another equal_shares.rs");
    let test = include_str!("worked_example.rs").rsplit("// On the page:\n").next().expect("marked below");
    assert!(page.contains(&format!("```rust\n{test}```\n")), "docs/how-to/write-an-algorithm.md shows another test");
}

#[test]
fn the_example_keeps_every_rule() {
    assert_eq!(conformance::controller::check(&ENTRY), []);
}

// On the page:
#[test]
fn with_two_paths_each_grows_four_times_slower_than_reno() {
    let mut siblings = [SubflowView::established(10.0, 0.1), SubflowView::established(20.0, 0.5)];
    let mut increase = |own| EqualShares.increase(&SubflowGroup::new(&mut siblings, own));
    assert_eq!([increase(0), increase(1)], [1.0 / 40.0, 1.0 / 80.0]);
}
