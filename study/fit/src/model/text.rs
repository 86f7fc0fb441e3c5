//! The links of a model as the text of a scenario, for values of its unknowns.

use super::{PathModel, REVERSE_RATE};
use crate::probe::toml_text;

/// The share of packets that is lost in the bad state, percent.
const BAD_PERCENT: f64 = 60.0;

/// The value of an unknown by its key; none of one that the model lacks.
type Value<'a> = &'a dyn Fn(&str) -> Option<f64>;

/// All tables of these paths and their links.
pub(super) fn links(paths: &[&PathModel], value: Value<'_>) -> String {
    let (mut text, mut shared) = (String::new(), Vec::new());
    for path in paths {
        let prefix = format!("path.{}", path.name);
        let name = toml_text(&path.name);
        let Some(bottleneck) = &path.bottleneck else {
            let (forward, reverse) = capacity(&prefix, value);
            let (wire, loss) = wire(&prefix, value);
            text += &format!("[[path]]\nname = {name}\n{forward}{wire}reverse = {{ {reverse}, {loss} }}\n\n");
            continue;
        };
        let (access, link) = (toml_text(&format!("{}-access", path.name)), toml_text(bottleneck));
        if !shared.contains(&bottleneck) {
            let (forward, reverse) = capacity(&format!("link.{bottleneck}"), value);
            text += &format!("[[link]]\nname = {link}\n{forward}reverse = {{ {reverse} }}\n\n");
            shared.push(bottleneck);
        }
        let (wire, loss) = wire(&prefix, value);
        text += &format!("[[link]]\nname = {access}\n{wire}reverse = {{ {loss} }}\n\n");
        text += &format!("[[path]]\nname = {name}\nlinks = [{access}, {link}]\n\n");
    }
    text
}

/// What a link carries and holds: the lines of the forward direction, and the keys of the reverse one.
fn capacity(prefix: &str, value: Value<'_>) -> (String, String) {
    let of = |key: &str| value(&format!("{prefix}.{key}"));
    let bit = |rate: f64| rate.round().max(1.0) as u64;
    let packets = |packets: f64| packets.round().max(2.0) as u64;
    let rate = of("rate").unwrap_or_default();
    let (width, deviation) = (of("walk_width").unwrap_or(1.0), of("walk_deviation").unwrap_or_default());
    let mut forward = format!(
        "rate = \"{}bit\"\nrate_walk = {{ min = \"{}bit\", max = \"{}bit\", deviation = \"{}bit\", interval = \"100ms\" }}\n\
         queue = {{ limit = \"{}p\" }}\n",
        bit(rate),
        bit(rate / width),
        bit(rate * width),
        bit(rate * deviation),
        packets(of("queue.limit").unwrap_or_default()),
    );
    if let Some((rate, burst)) = of("policer.rate").zip(of("policer.burst")) {
        forward += &format!("policer = {{ rate = \"{}bit\", burst = \"{}b\" }}\n", bit(rate), bit(burst));
    }
    let reverse_rate = of("reverse.rate").unwrap_or(REVERSE_RATE.max(rate / 4.0));
    let queue = of("reverse.queue.limit");
    let queue = queue.map_or(String::new(), |limit| format!(", queue = {{ limit = \"{}p\" }}", packets(limit)));
    (forward, format!("rate = \"{}bit\"{queue}", bit(reverse_rate)))
}

/// Delay, jitter and losses: the lines of the forward direction, and the loss of the reverse one.
fn wire(prefix: &str, value: Value<'_>) -> (String, String) {
    let of = |key: &str| value(&format!("{prefix}.{key}")).unwrap_or_default();
    let us = |seconds: f64| (seconds * 1e6).round().max(0.0) as u64;
    let forward = format!(
        "delay = \"{}us\"\njitter = \"{}us\"\n\
         loss = {{ to_bad = \"{:.5}%\", to_good = \"{:.4}%\", bad = \"{BAD_PERCENT}%\" }}\n",
        us(of("delay")),
        us(of("jitter")),
        to_bad_percent(of("loss.share"), of("loss.burst")),
        100.0 / of("loss.burst").max(1.0),
    );
    (forward, format!("loss = \"{:.5}%\"", of("reverse.loss")))
}

/// The chance per packet of entering the bad state, percent, if `share` percent of the packets are lost and the bad state
/// lasts for `burst` packets: the bad state holds `share / BAD_PERCENT` of all packets.
fn to_bad_percent(share: f64, burst: f64) -> f64 {
    let bad = (share / BAD_PERCENT).clamp(0.0, 0.9);
    (100.0 * bad / (1.0 - bad) / burst.max(1.0)).min(100.0)
}
