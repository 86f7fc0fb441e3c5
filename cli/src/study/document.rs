//! The one JSON document that `--json` prints. `docs/json.md` describes every key.

use record::Run;
use serde_json::json;
use store::Manifest;

/// A study: what was run and, a line each, every run by cell and seed, without the time series, which are in the results
/// folder.
pub(crate) fn document(manifest: &Manifest, runs: &[Run]) -> String {
    let Manifest { scenario, title, digest, .. } = manifest;
    let runs: Vec<String> = runs.iter().map(Run::to_json).collect();
    format!(
        "{{\n\"scenario\": {},\n\"title\": {},\n\"digest\": {},\n\"runs\": [\n{}\n]\n}}",
        json!(scenario),
        json!(title),
        json!(digest), // of the runs' digests, in their order
        runs.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Cpu, Flow, Path, Subflow, Tunnel};
    use serde_json::Value;
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

    #[test]
    fn the_docs_name_every_key_and_no_other() {
        let run = Run {
            cpu: vec![Cpu::default()],
            flows: vec![Flow::default()],
            subflows: vec![Subflow::default()],
            paths: vec![Path::default()],
            tunnel: Some(Tunnel::default()),
            ..Run::default()
        };
        let document = serde_json::from_str(&super::document(&Manifest::default(), &[run])).unwrap();
        let docs = include_str!("../../../docs/json.md");
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
