//! A drawn world as the text of a scenario.

use crate::world::World;
use link::{LossModel, PipeConfig, QueueLimit};
use scenario::model::{Experiment, Flow, FlowKind, Link, Route};
use std::fmt::Write;

impl World {
    /// The scenario whose run is that of this drawn world. `None` if a link has a trace, which a scenario takes from a file
    /// only, and for a seed from 2^63 on.
    #[must_use]
    pub fn to_toml(&self) -> Option<String> {
        let seed = i64::try_from(self.seed).ok()?;
        let Experiment { name, duration, links, flows, .. } = &self.experiment;
        let mut text = format!("# A world that was drawn by seed.\nname = \"{name}\"\n");
        let _ = write!(text, "duration = \"{}ns\"\nseeds = [{}]\n", duration.0, seed);
        for link in links {
            push_link(&mut text, link)?;
        }
        for path in &self.experiment.paths {
            let links: Vec<&str> = path.links.iter().map(|link| links[*link].name.as_str()).collect();
            let _ = write!(text, "\n[[path]]\nname = \"{}\"\nlinks = {links:?}\nmtu = \"{}b\"\n", path.name, path.mtu);
        }
        for flow in flows {
            push_flow(&mut text, &self.experiment, flow);
        }
        Some(text)
    }
}

fn push_link(text: &mut String, link: &Link) -> Option<()> {
    let PipeConfig { delay, overhead, loss, .. } = &link.forward;
    let [forward, reverse] = [rate_and_queue(&link.forward)?, rate_and_queue(&link.reverse)?];
    let forward: String = forward.map(|key| format!("{key}\n")).concat();
    let _ = write!(text, "\n[[link]]\nname = \"{}\"\n{forward}delay = \"{}ns\"\n", link.name, delay.0);
    let _ = writeln!(text, "overhead = \"{overhead}b\"\nloss = \"{}\"", percent(loss));
    let _ = writeln!(text, "reverse = {{ {}, loss = \"0%\" }}", reverse.join(", "));
    Some(())
}

/// The keys of a direction of a link; `None` if it has no rate.
fn rate_and_queue(pipe: &PipeConfig) -> Option<[String; 2]> {
    let QueueLimit::Packets(packets) = pipe.queue.limit else { return None };
    Some([format!("rate = \"{}bit\"", pipe.rate?.0), format!("queue = {{ limit = \"{packets}p\" }}")])
}

/// A loss probability in percent, to the last digit.
fn percent(loss: &LossModel) -> String {
    let LossModel::Random(share) = loss else { return "0%".to_owned() };
    let digits = format!("{share}");
    let fraction = format!("{:0<2}", digits.strip_prefix("0.").unwrap_or("0"));
    match fraction.split_at(2) {
        (whole, "") => format!("{whole}%"),
        (whole, rest) => format!("{whole}.{rest}%"),
    }
}

fn push_flow(text: &mut String, experiment: &Experiment, flow: &Flow) {
    let FlowKind::Tcp { congestion, multipath, .. } = &flow.kind else { return };
    let _ = write!(text, "\n[[flow]]\nname = \"{}\"\ncongestion = \"{}\"\n", flow.name, congestion.name);
    let _ = writeln!(text, "start = \"{}ns\"", flow.start.0);
    if let Route::Path(path) = flow.route {
        let _ = writeln!(text, "path = \"{}\"", experiment.paths[path].name);
    }
    if let Some(multipath) = multipath {
        let options = multipath.mptcp().map_or(0, |mptcp| mptcp.dss_option_bytes);
        let _ = writeln!(text, "kind = \"mptcp\"\nscheduler = \"{}\"", multipath.scheduler.name);
        let _ = writeln!(text, "mptcp = {{ dss_option = \"{options}b\" }}");
    }
}
