//! A testbed for programs that do not use this library: it exists until standard input ends.

use super::{LEFT, RIGHT, Testbed};
use serde_json::json;
use std::error::Error;

/// `agent testbed LINK ...`, each link `FORWARD / REVERSE`: makes a [pair](Testbed::pair) and prints one line of JSON,
/// its namespaces and addresses. After that a line `K CHANGE` on standard input changes link `K`, and is answered.
pub(crate) fn main(links: &[&str]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy();
    // The agent is a separate program, or a command of `ropewalk`.
    let agent = if program.ends_with("agent") { vec![&*program] } else { vec![&*program, "lab-agent"] };
    let mut testbed = Testbed::pair(&agent, links)?;
    let of_link = |k: usize| {
        json!({
            "device": testbed.device(k),
            "v4": [testbed.v4(k, LEFT), testbed.v4(k, RIGHT)],
            "v6": [testbed.v6(k, LEFT), testbed.v6(k, RIGHT)],
        })
    };
    let links: Vec<_> = (0..links.len()).map(of_link).collect();
    println!("{}", json!({ "hosts": [testbed.namespace(LEFT), testbed.namespace(RIGHT)], "links": links }));
    for line in std::io::stdin().lines() {
        match change(&mut testbed, &line?) {
            Ok(()) => println!("done"),
            Err(error) => println!("refused: {error}"),
        }
    }
    Ok(())
}

fn change(testbed: &mut Testbed, line: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (link, arguments) = line.split_once(' ').ok_or("K forward|reverse|both CHANGE ...")?;
    let link: usize = link.parse()?;
    if link >= testbed.links.len() {
        return Err(format!("there is no link {link}").into());
    }
    Ok(testbed.change(link, arguments)?)
}
