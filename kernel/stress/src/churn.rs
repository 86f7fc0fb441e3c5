//! Disturbing threads: they add and remove endpoints, change links, and unload programs in use.

use crate::network::{Host, Network};
use kernel::Program;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use units::RngStream;

/// The state that all threads of a run share: the stop flag and counters.
#[derive(Debug, Default)]
pub struct Shared {
    /// Set once.
    pub stop: AtomicBool,
    /// Connections that were opened.
    pub connections: AtomicU64,
    /// Handshakes that did not succeed.
    pub refused: AtomicU64,
    /// Switches of the algorithm of an open connection.
    pub switches: AtomicU64,
    /// Endpoints removed and added again.
    pub endpoint_changes: AtomicU64,
    /// Programs unloaded and loaded again.
    pub reloads: AtomicU64,
    /// Changes of a link's rate, loss and reordering.
    pub link_changes: AtomicU64,
}

impl Shared {
    /// Whether the threads should end.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps, but not beyond the end.
    pub fn sleep(&self, span: Duration) {
        let step = Duration::from_millis(50);
        let mut left = span;
        while !self.stopped() && !left.is_zero() {
            std::thread::sleep(step.min(left));
            left = left.saturating_sub(step);
        }
    }
}

/// Increments a counter.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Removes an endpoint or adds it again, five times per second, until `changes` changes are made. Never the first
/// link's.
pub fn endpoints(network: &Network, shared: &Shared, mut rng: RngStream, changes: u64) {
    let mut present = vec![true; network.links()];
    while !shared.stopped() && shared.endpoint_changes.load(Ordering::Relaxed) < changes {
        let link = 1 + usize::try_from(rng.below(network.links() as u64 - 1)).expect("a number of links");
        let changed = if present[link] { network.delete_endpoint(link) } else { network.add_endpoint(link) };
        if changed.is_ok() {
            present[link] = !present[link];
            count(&shared.endpoint_changes);
        }
        shared.sleep(Duration::from_millis(200));
    }
}

/// Unloads one program after another while connections use it, and loads it again.
///
/// # Errors
/// If the kernel refuses.
pub fn programs(programs: &[&'static Program], shared: &Shared, interval: Duration) -> Result<(), String> {
    for program in programs.iter().cycle() {
        shared.sleep(interval);
        if shared.stopped() {
            break;
        }
        kernel::unload(program).map_err(|error| error.to_string())?;
        shared.sleep(Duration::from_millis(300));
        kernel::load(program).map_err(|error| error.to_string())?;
        count(&shared.reloads);
    }
    Ok(())
}

/// Draws each link's rate, delay, loss and reordering again every few seconds. Every other time a link is also limited
/// at the client's own device, by a bucket of 30 kB. A kernel without netem limits rates only.
///
/// # Errors
/// If `tc` fails.
pub fn links(network: &Network, shared: &Shared, mut rng: RngStream) -> Result<(), String> {
    let has_netem = network.tc(Host::Router, "qdisc replace dev lo root netem delay 1ms").is_ok();
    while !shared.stopped() {
        for link in 0..network.links() {
            limit(network, link, has_netem, &mut rng)?;
            let rate = if rng.chance(0.5) { 2 + rng.below(30) } else { 1000 };
            let own = format!("qdisc replace dev up{link} root tbf rate {rate}mbit burst 30kb limit 30kb");
            network.tc(Host::Client, &own)?;
            count(&shared.link_changes);
        }
        shared.sleep(Duration::from_millis(1000 + rng.below(4000)));
    }
    Ok(())
}

/// Limits a link towards the server. With netem it also delays, loses and reorders data, and acknowledgements on the
/// reverse path.
fn limit(network: &Network, link: usize, has_netem: bool, rng: &mut RngStream) -> Result<(), String> {
    let (rate, kilobytes, delay) = (1 + rng.below(40), 10 + rng.below(120), 1 + rng.below(30));
    let tbf = format!("tbf rate {rate}mbit burst 20kb limit {kilobytes}kb");
    let loss = ["0", "0", "0.1", "0.5", "2", "8"][usize::try_from(rng.below(6)).expect("below 6")];
    let reorder = ["0", "0", "2", "25", "50"][usize::try_from(rng.below(5)).expect("below 5")];
    if !has_netem {
        return network.tc(Host::Router, &format!("qdisc replace dev down{link} root {tbf}")).map(drop);
    }
    let netem = format!("netem delay {delay}ms {}ms loss {loss}%", delay / 3);
    let data = if reorder == "0" { netem.clone() } else { format!("{netem} reorder {reorder}% 50%") };
    network.tc(Host::Router, &format!("qdisc replace dev down{link} root handle 1: {data}"))?;
    network.tc(Host::Router, &format!("qdisc replace dev down{link} parent 1:1 handle 10: {tbf}"))?;
    network.tc(Host::Router, &format!("qdisc replace dev c{link} root {netem}")).map(drop)
}
