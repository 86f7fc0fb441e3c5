//! A world as text: a line for readers, and a scenario file.

use super::link::{Layout, Link, Network};
use super::rivals::{Rival, Tests};
use super::trouble::Event;

/// Bandwidth-delay product above which hosts have larger buffers than Linux's default, bytes.
const LARGE_BDP: u64 = 1 << 20;

/// A description of a world in one line.
pub(super) fn about(network: &Network, tests: &Tests, rivals: &[Rival], events: &[Event]) -> String {
    let links: Vec<String> = network.links.iter().map(Link::about).collect();
    let mut parts = vec![links.join(" | ")];
    if network.layout.has_access() {
        parts.push(format!("a second path is {:.1} ms longer", network.access_us as f64 * 2.0 / 1e3));
    }
    parts.extend(network.ecn.then(|| "ECN".to_owned()));
    parts.extend(events.iter().map(|event| event.about.clone()));
    let rivals: Vec<&str> = rivals.iter().map(|rival| rival.about.as_str()).collect();
    let beside = if rivals.is_empty() { " alone".to_owned() } else { format!(" beside {}", rivals.join(", ")) };
    parts.push(format!("{}{beside}", tests.about));
    parts.join("; ")
}

/// The scenario file.
pub(super) fn scenario(
    seed: u64,
    about: &str,
    network: &Network,
    duration_ms: u64,
    tests: &Tests,
    rivals: &[Rival],
    events: &[Event],
) -> String {
    let links: String = network.links.iter().map(link).collect();
    let rivals: String = rivals.iter().map(|rival| rival.text.as_str()).collect();
    let events: String = events.iter().map(|event| event.text.as_str()).collect();
    format!(
        "# World {seed}.\nname = \"world-{seed}\"\ntitle = \"World {seed}\"\nabout = \"{about}\"\nduration = \"{duration_ms}ms\"\n\
         seeds = [{seed}]\n\n{}{links}{}[[flow]]\nname = \"test\"\ncongestion = \"cubic\"\n{}\n{rivals}{events}",
        host(network),
        paths(network),
        tests.keys,
    )
}

fn host(network: &Network) -> String {
    let bdp = network.links.iter().map(|link| link.rate_kbit * network.rtt_us / 8000).max().unwrap_or_default();
    let ecn = if network.ecn { "ecn = true\n" } else { "" };
    let buffers = match bdp > LARGE_BDP {
        true => format!("receive_buffer = [\"4096b\", \"131072b\", \"{0}b\"]\nsend_buffer = \"{0}b\"\n", 8 * bdp),
        false => String::new(),
    };
    if ecn.is_empty() && buffers.is_empty() { String::new() } else { format!("[host]\n{ecn}{buffers}\n") }
}

fn link(link: &Link) -> String {
    format!("[[link]]\nname = \"{}\"\n{}\n\n", link.name, link.keys.join("\n"))
}

fn paths(network: &Network) -> String {
    let path = |name: &str, links: &str| format!("[[path]]\nname = \"{name}\"\nlinks = [{links}]\n\n");
    let access = || format!("[[link]]\nname = \"access\"\ndelay = \"{}us\"\n\n", network.access_us);
    path("a", "\"bottleneck\"")
        + &match network.layout {
            Layout::One => String::new(),
            Layout::TwoRtts | Layout::Shared => access() + &path("b", "\"access\", \"bottleneck\""),
            Layout::Separate => path("b", "\"second\""),
        }
}
