//! A simulation in a program of one's own: a text in, numbers out.
//!
//!     cargo run --package ropewalk-sim --example embed

use std::error::Error;
use std::path::Path;

/// One flow over a link of 10 Mbit/s.
const SCENARIO: &str = r#"
name = "embedded"
duration = "10s"

[[path]]
name = "path"
rate = "10mbit"
delay = "10ms"

[[flow]]
name = "flow"
congestion = "cubic"
"#;

fn run(text: &str) -> Result<record::Run, Box<dyn Error>> {
    let scenario = scenario::parse("SCENARIO", text, Path::new(""), &scenario::Overrides::default())?;
    Ok(ropewalk_sim::run(&scenario.cells[0].experiment, 1)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let run = run(SCENARIO)?;
    println!("{:.2} Mbit/s, digest {}", run.flows[0].goodput_mbps, run.digest);
    Ok(())
}

#[test]
fn a_flow_fills_its_link() {
    let goodput = run(SCENARIO).expect("a scenario").flows[0].goodput_mbps;
    // 1448 of 1500 bytes are payload.
    let limit = 10.0 * 1448.0 / 1500.0;
    assert!(goodput > 0.95 * limit && goodput <= limit, "{goodput}");
}
