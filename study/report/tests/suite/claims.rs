//! Verdicts with their uncertainty, published verdicts, and keys that the source does not give.

use crate::made_up;
use ropewalk_report::{Claim, ClaimColumn, Study, Test, claims_document, claims_table, html, terminal};
use serde_json::{Value, json};

/// Goodputs, Mbit/s, of four seeds by algorithm and delay: at 10 ms `vegas` is 1 below `veno` with each seed, at 20 ms
/// their order is chance, at 30 ms `vegas` is 1 above.
fn runs() -> Vec<record::Run> {
    let mut runs = made_up::runs(&[1, 2, 3, 4], 0);
    runs.retain(|run| {
        ["vegas", "veno"].contains(&run.parameters["flow.tcp.congestion"].as_str())
            && ["10ms", "20ms", "30ms"].contains(&run.parameters["path.eno2.delay"].as_str())
    });
    for run in &mut runs {
        let luck = [3.0, 9.0, 5.0, 7.0][run.seed as usize - 1];
        let (vegas, delay) = (run.parameters["flow.tcp.congestion"] == "vegas", &run.parameters["path.eno2.delay"]);
        let difference = match delay.as_str() {
            "10ms" => -1.0,
            "20ms" => [0.5, -0.4, -0.3, 0.4][run.seed as usize - 1],
            _ => 1.0,
        };
        run.flows[0].goodput_mbps = if vegas { 100.0 + luck + difference } else { 100.0 + luck };
    }
    runs
}

fn order(names: [&str; 2]) -> Test {
    Test::Order(names.map(str::to_owned).to_vec())
}

fn with_claims<'r>(runs: &'r [record::Run], claims: Vec<Claim>) -> Study<'r> {
    let mut study = made_up::study(runs);
    study.layout.claims = claims;
    study
}

/// A verdict for each delay: holds, open, does not hold.
fn each() -> Claim {
    let each = Some("path.eno2.delay".to_owned());
    Claim { each, ..made_up::claim("Veno is faster", order(["veno", "vegas"])) }
}

/// One verdict over the delays.
fn unknown(names: [&str; 2]) -> Claim {
    let unknown = Some("path.eno2.delay".to_owned());
    Claim { unknown, ..made_up::claim("One is faster", order(names)) }
}

#[test]
fn paired_seeds_decide_what_their_spread_alone_would_not() {
    let runs = runs();
    let document = claims_document(&with_claims(&runs, vec![each()]));
    let verdicts: Vec<&Value> =
        document["results"].as_array().unwrap().iter().map(|result| &result["verdict"]).collect();
    assert_eq!(verdicts, ["holds", "undecided", "does_not_hold"], "one of luck's differences is 6, and 1 decides");
    assert_eq!(document["interval"], json!([1, 2]), "the one in the middle holds or does not");
    let share = document["results"][1]["share"].as_f64().unwrap();
    assert!(share > 0.05 && share < 0.95, "{share}");
}

#[test]
fn the_tally_says_what_is_open_and_between_which_numbers_of_claims_hold() {
    let runs = runs();
    let study = with_claims(&runs, vec![each()]);
    let counts = "1 holds, 1 does not hold, 1 not decided by 4 runs; 1 to 2 of 3 hold (90 % interval)";
    for width in [60, 100] {
        let text = terminal(&study, width, false);
        let flowed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowed.contains(&format!("Claims: {counts}")), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(flowed.contains("% of resamples") || width > 60, "{text}");
    }
    let page = html(&study);
    assert!(page.contains(counts) && page.contains("<i>?</i> not decided by 4 runs: holds in "));
}

#[test]
fn an_expected_failure_is_counted_by_itself_and_says_why() {
    let runs = runs();
    let study = with_claims(&runs, vec![Claim { expected_failure: "Vegas catches up".to_owned(), ..each() }]);
    let counts = "1 holds, 1 does not hold as expected, 1 not decided by 4 runs; 1 to 2 of 3 hold (90 % interval)";
    let (text, page, document) = (terminal(&study, 200, false), html(&study), claims_document(&study));
    assert!(text.contains(counts) && text.contains("note: expected to fail: Vegas catches up"), "{text}");
    assert!(page.contains("<i>✗</i> does not hold, as expected") && page.contains("expected to fail: Vegas"));
    assert_eq!([&document["does_not_hold"], &document["expected_failures"]], [0, 1]);
    assert_eq!(document["results"][2]["verdict"], "expected_failure");
}

#[test]
fn a_key_that_the_source_does_not_give_has_one_verdict() {
    let runs = runs();
    let claims = vec![unknown(["veno", "vegas"]), unknown(["vegas", "veno"])];
    let study = with_claims(&runs, claims);
    let text = terminal(&study, 200, false);
    assert!(text.contains("Claims: 2 hold; 2 of 2 hold (90 % interval)"), "{text}");
    let words = "The source does not give path.eno2.delay. Claims that hold, of 2: 1 at 10ms, 0 at 20ms, 1 at 30ms.";
    assert!(text.contains(words), "{text}");
    let document = claims_document(&study);
    let of_result = |index: usize| {
        let values = document["results"][index]["values"].as_array().unwrap();
        values.iter().map(|value| value["verdict"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of_result(0), ["holds", "undecided", "does_not_hold"]);
    assert_eq!(of_result(1), ["does_not_hold", "undecided", "holds"]);
    assert!(html(&study).contains("<i>✓</i> holds at 10ms, not decided at 20ms</td>"));
    let none =
        Claim { test: Test::Range { names: vec!["vegas".to_owned()], min: 200.0, max: None }, ..unknown(["", ""]) };
    assert!(html(&with_claims(&runs, vec![none])).contains("<i>✗</i> holds at none of 3 values</td>"));
}

/// The published table has Vegas at 5.65 to 2.11 Mbit/s over these delays, Veno at 180 to 106.
#[test]
fn a_claim_is_put_to_the_published_rows_of_its_own_cells() {
    let runs = runs();
    let range = |min| Claim {
        test: Test::Range { names: vec!["veno".to_owned()], min, max: None },
        ..made_up::claim("Veno has 146 on average", order(["", ""]))
    };
    let other_value = Claim { value: "rtt_ms.mean".to_owned(), ..range(0.0) };
    let study = with_claims(&runs, vec![range(146.0), range(146.1), each(), other_value]);
    let document = claims_document(&study);
    let published = |index: usize| document["results"][index]["references"].clone();
    let veno = |verdict, claimed| json!([{ "name": "published", "verdict": verdict, "numbers": format!("veno 146 Mbit/s, claimed at least {claimed}") }]);
    assert_eq!(published(0), veno("holds", "146"), "the mean of 180, 152 and 106");
    assert_eq!(published(1)[0]["verdict"], "does_not_hold");
    assert_eq!(published(3)[0]["numbers"], "veno 152 ≥ vegas 3.13 Mbit/s");
    assert_eq!(published(5), json!([]), "no table shows round-trip times");
    assert_eq!(document["references"], json!([{ "name": "published", "holds": 4, "claims": 5 }]));
    let text = terminal(&study, 200, false);
    assert!(text.contains("4 of 5 claims hold in the published table; 1 has no values there."), "{text}");
}

#[test]
fn verdicts_of_several_studies_stand_beside_those_of_all_runs() {
    let runs = runs();
    let with_seeds = |seeds: [u64; 2]| runs.iter().filter(|run| seeds.contains(&run.seed)).cloned().collect::<Vec<_>>();
    let halves = [[1, 2], [3, 4]].map(with_seeds);
    let column = |name: &str, runs: &[record::Run]| ClaimColumn::of(name, &with_claims(runs, vec![each()]));
    let table = claims_table(&[column("a", &halves[0]), column("b", &halves[1])], &column("all", &runs));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "| claim | a | b | all | + / open / - |");
    assert_eq!(lines[2], "| Veno is faster; delay 10ms | 100 + | 100 + | 100 + | 2 / 0 / 0 |");
    assert!(lines[3].ends_with(" | 0 / 2 / 0 |"), "{table}");
    let agreement =
        "Of 6 verdicts 4 are decided; 4 of these agree with the verdict of all runs together, 0 contradict it";
    assert!(table.contains(agreement), "{table}");
}
