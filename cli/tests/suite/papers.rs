//! The shipped studies of papers, of L4S, and two of the tunnel, run in their short form: the claims that the runs decide.
//!
//! A study has as many seeds as its claims need. Claims that chance decides are not named.

use crate::program::{folder, ropewalk};
use serde_json::Value;
use std::path::Path;

/// The claims of a shipped scenario in its short form with these `--set`s, from the JSON document.
fn claims(name: &str, sets: &[&str]) -> Vec<Value> {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../scenarios/{name}.toml"));
    let out = folder(&name.replace('/', "-")).join("out").display().to_string();
    let scenario = scenario.display().to_string();
    let mut arguments = vec!["run", &scenario, "--quick", "-q", "--json", "--out", &out];
    arguments.extend(sets.iter().flat_map(|set| ["--set", *set]));
    let run = ropewalk(&arguments);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).expect("a JSON document");
    document["claims"]["results"].as_array().expect("the scenario has claims").clone()
}

/// Checks that each of these claims has the verdict: by the beginning of its text, and the setting after a `|`.
fn assert_verdict(claims: &[Value], verdict: &str, texts: &[&str]) {
    for text in texts {
        let (says, setting) = text.split_once(" | ").unwrap_or((text, ""));
        let is_named = |claim: &&Value| {
            claim["says"].as_str().is_some_and(|text| text.starts_with(says))
                && (setting.is_empty() || claim["setting"] == setting)
        };
        let named: Vec<&Value> = claims.iter().filter(is_named).collect();
        assert!(!named.is_empty(), "no claim says: {text}");
        for claim in named {
            assert_eq!(claim["verdict"], verdict, "{claim:#}");
        }
    }
}

/// Checks that there are so many claims, and that all hold.
fn assert_all_hold(claims: &[Value], count: usize) {
    assert_eq!(claims.len(), count);
    claims.iter().for_each(|claim| assert_eq!(claim["verdict"], "holds", "{claim:#}"));
}

#[test]
fn han_2019_finds_bbr_ahead_on_lossy_paths_and_coupled_bbr_behind_the_flows_beside_it() {
    let cases = r#"sweep.case=["lossy", "alone", "fair", "ours", "lia"]"#;
    let claims = claims("papers/han-2019", &["repetitions=3", cases]);
    let holds = [
        "BBR gives several times the throughput of the others",
        "BBR improves the overall throughput of MPTCP",
        "The improvement is significant on 4G",
        "CUBIC performs better than LIA, OLIA and BALIA",
    ];
    assert_verdict(&claims, "holds", &holds);
    let fails = [
        "Coupled BBR achieves fairness",
        "The overall throughput of Coupled BBR with the adaptive scheduler is two times | path first",
        "It is fair: MPTCP gets what TCP gets on the better path | path first",
    ];
    assert_verdict(&claims, "does_not_hold", &fails);
}

#[test]
fn luczak_2023_finds_balia_not_first_and_wvegas_not_last() {
    let claims = claims("papers/luczak-2023", &["repetitions=10"]);
    let fails = [
        "BALIA achieves the lowest head-of-line degree",
        "BALIA has the highest average throughput",
        "wVegas is weakest: its protocol delay is over two times worse with Reno",
        "wVegas's head-of-line degree is over five times larger with Reno",
        "wVegas's throughput is 33 % lower",
    ];
    assert_verdict(&claims, "does_not_hold", &fails);
}

#[test]
fn quinn_2711_finds_adaptive_loss_detection_several_times_ahead_of_static() {
    assert_all_hold(&claims("papers/quinn-2711", &[]), 1);
}

/// Three of the 22 claims are not in the publication's own table.
#[test]
fn luczak_2023_has_nineteen_claims_in_its_own_table() {
    let claims = claims("papers/luczak-2023", &["repetitions=1", "duration=3s"]);
    let published = |verdict| claims.iter().filter(|claim| claim["references"][0]["verdict"] == verdict).count();
    assert_eq!([published("holds"), published("does_not_hold")], [19, 3]);
}

#[test]
fn szilagyi_2020_finds_360_mbit_s_with_all_but_vegas_in_a_tunnel_with_noise() {
    let sets = ["repetitions=2", r#"sweep.host.ip=["IPv4"]"#, r#"sweep.case=["mptcp", "mpt-gre", "noisy"]"#];
    assert_all_hold(&claims("papers/szilagyi-2020", &sets), 3);
}

#[test]
fn upgraded_users_leave_others_more_with_olia_than_with_lia_than_without_coupling() {
    assert_all_hold(&claims("multipath/khalili", &[]), 2);
}

/// Hosts of a fat tree that send to one another: half of what is possible with one path, five sixths with eight. One run.
#[test]
fn in_a_fat_tree_subflows_find_the_paths_that_one_path_misses() {
    assert_all_hold(&claims("fat-tree", &[]), 3);
}

/// All seeds of the default scheduler with the real-time class, which the claims are about. Eight runs may leave a claim on bulk open, as
/// a single run would decide it by chance.
#[test]
fn in_the_field_the_real_time_class_keeps_its_delays_and_bulk_its_share() {
    let tunnel = r#"{ label = "overflow", value = { mode = "ropewalk", scheduler = "overflow", realtime = true } }"#;
    let claims = claims("studies/field", &["repetitions=8", &format!("sweep.tunnel=[{tunnel}]")]);
    assert_eq!(claims.len(), 29);
    for claim in &claims {
        let is_about_bulk =
            claim["says"].as_str().is_some_and(|says| says.starts_with("Bulk") || says.starts_with("A link"));
        assert!(claim["verdict"] == "holds" || is_about_bulk && claim["verdict"] == "undecided", "{claim:#}");
    }
}

/// With acknowledgements paced by their own rate the bulk flow had 73 Mbit/s over DSL and satellite, which can carry 183.
/// One run.
#[test]
fn over_the_wide_area_the_tunnel_is_faster_than_its_faster_path() {
    assert_all_hold(&claims("studies/wide-area", &[]), 8);
}

/// Rates within a factor of two, 2 ms of queue for Prague and 15 ms for CUBIC, no loss of Prague's: what RFC 9332 and its
/// authors' evaluation say. With a coupling of 1 instead of 2 Prague has three times CUBIC's rate.
#[test]
fn prague_and_cubic_share_a_dualpi2_queue() {
    assert_all_hold(&claims("l4s", &["repetitions=2"]), 5);
}
