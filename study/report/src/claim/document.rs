//! The claims as JSON. `docs/reference/results.md` describes every key.

use super::tally::{ReferenceTally, UnknownTally};
use super::{ClaimResult, Evaluation, SettingResult, Tally, ValueResult, evaluate_claims};
use crate::study::Study;
use serde_json::{Value, json};

/// The claims of a study with their verdicts and numbers; null without claims.
#[must_use]
pub fn claims_document(study: &Study<'_>) -> Value {
    let claims = evaluate_claims(study);
    if claims.results.is_empty() {
        return Value::Null;
    }
    let mut document = tally(&claims.tally);
    document["results"] = claims.results.iter().flat_map(results).collect();
    document
}

fn tally(tally: &Tally) -> Value {
    let reference = |ReferenceTally { name, holds, claims }: &ReferenceTally| json!({ "name": name, "holds": holds, "claims": claims });
    let unknown = |UnknownTally { key, claims, values }: &UnknownTally| {
        let value = |(value, holds): &(String, usize)| json!({ "value": value, "holds": holds });
        json!({ "key": key, "claims": claims, "values": values.iter().map(value).collect::<Value>() })
    };
    json!({
        "holds": tally.holds,
        "does_not_hold": tally.fails,
        "expected_failures": tally.expected,
        "undecided": tally.undecided,
        "not_run": tally.not_run,
        "interval": tally.interval.map(|(low, high)| [low, high]),
        "references": tally.references.iter().map(reference).collect::<Value>(),
        "unknown": tally.unknown.iter().map(unknown).collect::<Value>(),
    })
}

/// An entry for each verdict of a claim.
fn results(result: &ClaimResult<'_>) -> Vec<Value> {
    let claim = result.claim;
    let entry = |setting: &SettingResult<'_>| {
        let references = setting.references().into_iter();
        json!({
            "says": claim.says,
            "source": claim.source,
            "setting": setting.setting,
            "verdict": setting.verdict().key(),
            "share": setting.share(),
            "unknown": claim.unknown,
            "values": setting.values.iter().map(value).collect::<Value>(),
            "references": references.map(|(name, evaluation)| named(name, evaluation)).collect::<Value>(),
        })
    };
    result.settings.iter().map(entry).collect()
}

fn value(value: &ValueResult) -> Value {
    let mut entry = evaluation(&value.study);
    entry["value"] = json!(value.value);
    entry["baseline"] = value.baseline.as_ref().map_or(Value::Null, evaluation);
    entry
}

fn named(name: &str, reference: &Evaluation) -> Value {
    json!({ "name": name, "verdict": reference.verdict.key(), "numbers": reference.numbers })
}

fn evaluation(evaluation: &Evaluation) -> Value {
    json!({
        "verdict": evaluation.verdict.key(),
        "share": evaluation.share(),
        "runs": evaluation.runs,
        "numbers": evaluation.numbers,
    })
}
