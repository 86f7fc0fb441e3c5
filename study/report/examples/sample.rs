//! Writes a report of made-up runs, to look at: `cargo run -p ropewalk-report --example sample -- sample.html [SEEDS]`.

#[path = "../tests/suite/made_up.rs"]
mod made_up;

use ropewalk_report::Test;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "sample.html".to_owned());
    let seeds = arguments.next().and_then(|seeds| seeds.parse().ok()).unwrap_or(1);
    let runs = made_up::runs(&(1..=seeds).collect::<Vec<u64>>(), 1200);
    let mut study = made_up::study(&runs);
    study.layout.figures = vec![made_up::figure()];
    study.layout.claims = vec![made_up::claim("Vegas is the slowest", Test::Lowest(vec!["vegas".to_owned()]))];
    print!("{}", ropewalk_report::terminal(&study, 80, true));
    std::fs::write(path, ropewalk_report::html(&study))
}
