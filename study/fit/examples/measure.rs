//! Prints a measurement of the paths of a file of links, made in the simulator by the usual probes: something to fit without
//! links of one's own.
//!
//! `cargo run --release -p ropewalk-fit --example measure -- LINKS.toml > measured.json`

#![allow(clippy::print_stdout, reason = "it prints a document")]

use fit::{Links, simulated_measurement};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("arguments: LINKS.toml")?;
    let links = Links::of_file(Path::new(&file))?;
    let paths = links.path_names()?;
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let measured = simulated_measurement(&links, &paths, &[901, 902, 903])?;
    println!("{}", serde_json::to_string_pretty(&measured)?);
    Ok(())
}
