//! `--set` as a whole: what a later one leaves of earlier ones, and their order where it does not matter.

/// The keys that have no effect on a run, so that they do not tell studies apart: more seeds are more of the same study.
const SEEDS: [&str; 2] = ["seeds", "repetitions"];
/// The keys whose places in a list of sets always matter.
const CASE: &str = "case";
const SWEEP: &str = "sweep";

/// The sets without those that a later one replaces: of the same key, or of one above it.
pub(crate) fn last(sets: &[String]) -> Vec<String> {
    let is_replaced = |index: usize| sets[index + 1..].iter().any(|later| replaces(key(later), key(&sets[index])));
    (0..sets.len()).filter(|index| !is_replaced(*index)).map(|index| sets[index].clone()).collect()
}

/// The sets that tell studies apart, in an order that is the same for all orders of the same meaning.
pub(crate) fn in_normal_order(sets: &[String]) -> Vec<&str> {
    let mut rest: Vec<&str> = sets.iter().map(String::as_str).filter(|set| !SEEDS.contains(&key(set))).collect();
    let mut ordered = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let is_free = |index: &usize| rest[..*index].iter().all(|earlier| !may_touch(key(earlier), key(rest[*index])));
        let first = (0..rest.len()).filter(is_free).min_by_key(|index| rest[*index]);
        ordered.push(rest.remove(first.expect("the first of them is free")));
    }
    ordered
}

/// The key of `KEY=VALUE`.
fn key(set: &str) -> &str {
    set.split_once('=').map_or(set, |(key, _)| key).trim()
}

/// Whether nothing is left of a set of `earlier` after one of `later`.
fn replaces(later: &str, earlier: &str) -> bool {
    let is_above = || later != SWEEP && earlier.strip_prefix(later).is_some_and(|rest| rest.starts_with('.'));
    later == earlier || is_above() || SEEDS.contains(&later) && SEEDS.contains(&earlier)
}

/// Whether the order of two sets may matter, because one may be at, above or below the other, or both sweep.
fn may_touch(one: &str, other: &str) -> bool {
    let [first, second] = [one, other].map(|key| key.split('.').next().unwrap_or_default());
    if [first, second].contains(&CASE) || (first == SWEEP && second == SWEEP) {
        return true;
    }
    let [one, other] = [one, other].map(|key| key.strip_prefix(SWEEP).map_or(key, |rest| rest.trim_start_matches('.')));
    one.is_empty() || other.is_empty() || one.split('.').zip(other.split('.')).all(|(one, other)| may_be(one, other))
}

/// Whether two parts of keys may stand for the same: a name with `*` and a number stand for several.
fn may_be(one: &str, other: &str) -> bool {
    let is_open = |part: &str| part.ends_with('*') || part.bytes().all(|byte| byte.is_ascii_digit());
    one == other || is_open(one) || is_open(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sets: &[&str]) -> Vec<String> {
        sets.iter().map(|set| (*set).to_owned()).collect()
    }

    #[test]
    fn the_last_value_of_a_key_counts() {
        for (sets, left) in [
            (&["a.b=1", "c=2", "a.b=3"][..], &["c=2", "a.b=3"][..]),
            (&["a.b=1", "a={}"], &["a={}"]),
            (&["a={}", "a.b=1"], &["a={}", "a.b=1"]),
            (&["ab=1", "a={}"], &["ab=1", "a={}"]),
            (&["seeds=[1]", "repetitions=3"], &["repetitions=3"]),
            (&["sweep.a=[1]", "sweep={ b = [1] }"], &["sweep.a=[1]", "sweep={ b = [1] }"]),
        ] {
            assert_eq!(last(&texts(sets)), left);
        }
    }

    #[test]
    fn sets_that_cannot_touch_have_one_order_and_others_keep_theirs() {
        let ordered = |sets: &[&str]| in_normal_order(&texts(sets)).join(" ");
        assert_eq!(ordered(&["b=1", "a.x=2", "seeds=[1]"]), "a.x=2 b=1");
        assert_eq!(ordered(&["a.x=2", "b=1"]), "a.x=2 b=1");
        for kept in [
            &["b={}", "b.x=1"][..],
            &["path.wifi.delay=1ms", "path.0.delay=2ms"],
            &["flow.web2.start=1s", "flow.web*.start=2s"],
            &["sweep.b=[1]", "sweep.a=[1]"],
            &["sweep.b.x=[1]", "b.x=2"],
            &["z=1", "case=one", "a=1"],
        ] {
            assert_eq!(ordered(kept), kept.join(" "));
        }
    }
}
