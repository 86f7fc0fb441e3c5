//! A bed for programs that do not use this library: it lasts until standard input ends.

use super::{Bed, LEFT, RIGHT};
use serde_json::json;
use std::error::Error;

/// `agent bed LINK ...`, each link `THERE / BACK`: makes a [pair](Bed::pair) and prints one line of JSON, its
/// namespaces and addresses. After that a line `K CHANGE` on standard input changes link `K`, and is answered.
pub(crate) fn main(links: &[&str]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy();
    // The agent is a program of its own, or a verb of `ropewalk`.
    let agent = if program.ends_with("agent") { vec![&*program] } else { vec![&*program, "lab-agent"] };
    let mut bed = Bed::pair(&agent, links)?;
    let of_link = |k: usize| {
        json!({
            "device": bed.device(k),
            "v4": [bed.v4(k, LEFT), bed.v4(k, RIGHT)],
            "v6": [bed.v6(k, LEFT), bed.v6(k, RIGHT)],
        })
    };
    let links: Vec<_> = (0..links.len()).map(of_link).collect();
    println!("{}", json!({ "hosts": [bed.namespace(LEFT), bed.namespace(RIGHT)], "links": links }));
    for line in std::io::stdin().lines() {
        match change(&mut bed, &line?) {
            Ok(()) => println!("done"),
            Err(why) => println!("refused: {why}"),
        }
    }
    Ok(())
}

fn change(bed: &mut Bed, line: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (link, words) = line.split_once(' ').ok_or("K there|back|both CHANGE ...")?;
    let link: usize = link.parse()?;
    if link >= bed.links.len() {
        return Err(format!("there is no link {link}").into());
    }
    Ok(bed.change(link, words)?)
}
