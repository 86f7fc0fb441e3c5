//! The one JSON document that `--json` prints. `docs/reference/results.md` describes every key.

use record::Run;
use serde_json::{Value, json};
use store::Manifest;

/// A study: its description, its claims with their verdicts, and every run by cell and seed, one per line. The time series
/// are not included; they are in the results folder.
pub(crate) fn document(manifest: &Manifest, runs: &[Run], claims: &Value) -> String {
    let Manifest { scenario, title, digest, .. } = manifest;
    let runs: Vec<String> = runs.iter().map(Run::to_json).collect();
    format!(
        "{{\n\"scenario\": {},\n\"title\": {},\n\"digest\": {},\n\"claims\": {},\n\"runs\": [\n{}\n]\n}}",
        json!(scenario),
        json!(title),
        json!(digest), // of the runs' digests, in their order
        claims,
        runs.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Cpu, DelayHistogram, Flow, Path, PathSender, RopewalkTunnel, Subflow, Tunnel};
    use report::{Claim, Column, Layout, Reference, Scope, Study, Table, Test};
    use std::collections::BTreeSet;

    /// Every key, at any depth.
    fn keys(value: &Value) -> BTreeSet<String> {
        let children: Vec<&Value> = match value {
            Value::Object(map) => map.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        let object_keys = value.as_object().into_iter().flat_map(|map| map.keys().cloned());
        object_keys.chain(children.into_iter().flat_map(keys)).collect()
    }

    /// The claims of a study with every part: a key that the source does not give, and published values.
    fn claims() -> Value {
        let [key, value, name] = ["duration", "goodput_mbps", "1s"].map(str::to_owned);
        let reference = Reference {
            name: "published".to_owned(),
            source: String::new(),
            unit: "Mbit/s".to_owned(),
            columns: vec!["10ms".to_owned()],
            rows: vec![(name.clone(), vec![Some(1.0)])],
            note: String::new(),
        };
        let column = Column { value: value.clone(), ..Column::default() };
        let table = Table {
            rows: vec![key.clone()],
            columns: Some("delay".to_owned()),
            values: vec![column],
            references: vec![reference],
            ..Table::default()
        };
        let test = Test::Range { names: vec![name], min: 0.0, max: None };
        let text = String::new;
        let [says, source, published, note, expected_failure] = std::array::from_fn(|_| text());
        let (each, unknown, scope, of, within) = (None, Some("delay".to_owned()), Scope::default(), key, 0.0);
        let claim =
            Claim { says, source, value, of, each, unknown, scope, test, within, published, note, expected_failure };
        let run = Run {
            flows: vec![Flow::default()],
            parameters: [("duration", "1s"), ("delay", "10ms")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..Run::default()
        };
        let layout = Layout { tables: vec![table], claims: vec![claim], ..Layout::default() };
        report::claims_document(&Study { layout, runs: &[run], ..Study::default() })
    }

    #[test]
    fn the_docs_name_every_key_and_no_other() {
        let run = Run {
            cpu: vec![Cpu::default()],
            flows: vec![Flow::complete()],
            subflows: vec![Subflow::complete()],
            paths: vec![Path { tunnel: Some(PathSender::default()), ..Path::default() }],
            histograms: vec![DelayHistogram::default()],
            tunnel: Some(Tunnel { ropewalk: Some(RopewalkTunnel::default()), ..Tunnel::default() }),
            ..Run::default()
        };
        let document = serde_json::from_str(&super::document(&Manifest::default(), &[run], &claims())).unwrap();
        let docs = include_str!("../../../docs/reference/results.md");
        // Other documents, of the tunnel.
        let (before, after) = docs.split_once("\n## The history of a tunnel\n").expect("it is there");
        let (_, after) = after.split_once("\n## A distribution\n").expect("it follows them");
        let docs = format!("{before}\n{after}");
        let rows = docs.lines().filter(|line| line.starts_with("| `"));
        let documented: BTreeSet<String> = rows.filter_map(|row| row.split('`').nth(1)).map(str::to_owned).collect();
        let summary = ["mean", "p50", "p95", "p99", "min", "max"].map(str::to_owned);
        assert_eq!(keys(&document), documented.into_iter().chain(summary).collect());
    }
}
