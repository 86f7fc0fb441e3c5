//! What an experiment's paths can carry, against sums that can be worked out by hand.

use crate::common::read;

fn capacity(lines: &str) -> Option<f64> {
    let text = format!("name = \"x\"\nduration = \"10s\"\n{lines}\n[[flow]]\nname = \"tcp\"\npath = \"a\"\n");
    read(&text, &[]).cells[0].experiment.capacity_mbps()
}

/// A path with a link of its own.
fn path_of(name: &str, keys: &str) -> String {
    format!("[[path]]\nname = \"{name}\"\n{keys}\n")
}

#[test]
fn paths_add_up_with_what_their_losses_leave() {
    let a = path_of("a", "rate = \"100mbit\"");
    let b = path_of("b", "rate = \"50mbit\"\nloss = \"10%\"\nreverse = { rate = \"1mbit\", loss = \"50%\" }");
    assert_eq!(capacity(&a), Some(100.0));
    assert_eq!(capacity(&(a + &b)), Some(145.0), "what comes back does not count");
    let bursts = "loss = { to_bad = \"1%\", to_good = \"3%\", bad = \"80%\", good = \"0%\" }";
    let capacity = capacity(&path_of("a", &format!("rate = \"100mbit\"\n{bursts}"))).unwrap();
    assert!((capacity - 80.0).abs() < 1e-9, "a quarter of the time in the bad state: {capacity}");
}

#[test]
fn the_slowest_link_counts_and_the_losses_of_all() {
    let links = "[[link]]\nname = \"fast\"\nrate = \"100mbit\"\nloss = \"50%\"\n[[link]]\nname = \"wire\"\nloss = \"20%\"\ncorrupt = \"50%\"\n";
    let slow = "[[link]]\nname = \"slow\"\nrate = \"80mbit\"\npolicer = { rate = \"40mbit\", burst = \"100kB\" }\n";
    let path = "[[path]]\nname = \"a\"\nlinks = [\"fast\", \"wire\", \"slow\"]\n";
    assert_eq!(capacity(&format!("{links}{slow}{path}")), Some(40.0 * 0.5 * (0.8 * 0.5)), "the policer's rate");
}

#[test]
fn a_capacity_that_is_unlimited_shared_or_changing_is_none() {
    let a = path_of("a", "rate = \"100mbit\"");
    assert_eq!(capacity(&(a.clone() + &path_of("b", "delay = \"1ms\""))), None);
    let link = "[[link]]\nname = \"wan\"\nrate = \"100mbit\"\n";
    let shared_path = |name| format!("[[path]]\nname = \"{name}\"\nlinks = [\"wan\"]\n");
    assert_eq!(capacity(&format!("{link}{}", shared_path("a"))), Some(100.0));
    assert_eq!(capacity(&format!("{link}{}{}", shared_path("a"), shared_path("b"))), None);
    let event = |keys: &str| format!("{a}[[event]]\nat = \"1s\"\npath = \"a\"\n{keys}\n");
    assert_eq!(capacity(&event("rate = \"10mbit\"")), None);
    assert_eq!(capacity(&event("up = false")), None);
    assert_eq!(capacity(&event("rate = \"10mbit\"\ndirection = \"reverse\"")), Some(100.0));
    assert_eq!(capacity(&event("delay = \"10ms\"")), Some(100.0));
}
