//! Uplinks of `uplinks = "auto"` that have lost their default route. They stay in view, with the cause and the command
//! that restores the route.

use super::diagnosis::{Devices, has_usable_address, unusable_device};
use super::events::unix_ms;
use super::routes::Route;
use super::uplinks::{DefaultRoutes, may_be_uplink};
use crate::config::{ConfiguredPath, TunnelConfig};
use crate::event::{Cause, CauseKind, Event, EventKind, EventLevel};
use crate::status::{PathState, PathStatus};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time for which an uplink without a default route stays in view.
const VIEW_TIME: Duration = Duration::from_secs(3600);

/// A lost uplink, as a path of the peer with this public key.
pub(super) type LostPath = (String, PathStatus);

/// The automatic uplinks that were seen, by the names of their paths.
#[derive(Debug, Default)]
pub(super) struct SeenUplinks(BTreeMap<String, SeenUplink>);

#[derive(Debug)]
struct SeenUplink {
    path: ConfiguredPath,
    /// Its latest default routes.
    routes: Vec<(bool, Route)>,
    /// When the last of them disappeared, also in milliseconds since the Unix epoch.
    lost: Option<(Instant, u64)>,
}

impl SeenUplinks {
    /// Notes the uplinks of `config`, and which of the earlier ones are lost. Returns an event for each that leaves the view.
    pub(super) fn update(
        &mut self,
        config: &TunnelConfig,
        routes: &DefaultRoutes,
        devices: &Devices,
        now: Instant,
    ) -> Vec<Event> {
        for path in config.paths.iter().filter(|path| path.automatic) {
            let seen = SeenUplink { path: path.clone(), routes: routes_of(path, routes), lost: None };
            self.0.insert(path.name.clone(), seen);
        }
        let mut events = Vec::new();
        self.0.retain(|name, seen| {
            if config.paths.iter().any(|path| path.automatic && path.name == *name) {
                return true;
            }
            let device = device_of(&seen.path);
            let is_wanted =
                config.interface.uplinks.as_ref().is_some_and(|options| may_be_uplink(config, options, device));
            let since = seen.lost.get_or_insert_with(|| (now, unix_ms())).0;
            let (level, message) = if !devices.has(device) {
                (EventLevel::Warn, "the uplink is gone: there is no such device any more")
            } else if !is_wanted {
                (EventLevel::Info, "no longer an uplink, by the configuration")
            } else if now - since > VIEW_TIME {
                (EventLevel::Info, "no default route for an hour: no longer shown")
            } else {
                return true;
            };
            events.push(Event { path: Some(name.clone()), ..Event::new(level, EventKind::UplinkRemoved, message) });
            false
        });
        events
    }

    /// The lost uplinks as paths of each peer with an endpoint.
    pub(super) fn lost(&self, config: &TunnelConfig, devices: &Devices) -> Vec<LostPath> {
        let peers = config.peers.iter().filter(|peer| peer.endpoint.is_some());
        let keys: Vec<String> = peers.filter_map(|peer| Some(peer.public_key?.to_string())).collect();
        let lost = self.0.values().filter_map(|seen| {
            let (_, lost_ms) = seen.lost?;
            Some(PathStatus {
                name: seen.path.name.clone(),
                state: PathState::Down,
                cause: Some(cause(device_of(&seen.path), &seen.routes, lost_ms, devices)),
                metered: seen.path.metered,
                secondary: seen.path.secondary,
                interface: seen.path.interface.clone(),
                ..PathStatus::default()
            })
        });
        lost.flat_map(|path| keys.iter().map(move |key| (key.clone(), path.clone()))).collect()
    }
}

/// The device of an automatic path.
fn device_of(path: &ConfiguredPath) -> &str {
    path.interface.as_deref().unwrap_or(&path.name)
}

/// The default routes of an automatic path: those of its device, or of its gateway.
fn routes_of(path: &ConfiguredPath, routes: &DefaultRoutes) -> Vec<(bool, Route)> {
    let all = routes.get(device_of(path)).into_iter().flatten();
    all.filter(|(_, route)| path.gateway.is_none() || path.gateway == route.gateway).cloned().collect()
}

/// Why an uplink no longer has a default route, and how to restore it.
fn cause(device: &str, routes: &[(bool, Route)], lost_ms: u64, devices: &Devices) -> Cause {
    let seconds = lost_ms / 1000 % 86_400;
    let since =
        format!("no default route since {:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let command = |(is_ipv4, route): &(bool, Route)| {
        let family = if *is_ipv4 { "ip" } else { "ip -6" };
        let via = route.gateway.map_or_else(String::new, |gateway| format!(" via {gateway}"));
        let metric = if route.metric == 0 { String::new() } else { format!(" metric {}", route.metric) };
        let table = if is_main(route.table) { String::new() } else { format!(" table {}", route.table) };
        format!("{family} route add default{via} dev {device}{metric}{table}")
    };
    let commands: Vec<_> = routes.iter().map(command).collect();
    let commands = format!("`{}`", commands.join("; "));
    if let Some(local) = unusable_device(device, devices) {
        let text = format!("{}; {since}", local.text);
        let remedy = format!("{}; then, unless DHCP does it, {commands}", local.remedy);
        return Cause { kind: local.kind, text, remedy };
    }
    if !routes.iter().any(|(is_ipv4, _)| has_usable_address(devices, device, *is_ipv4)) {
        let text = format!("{device} has lost its address; {since}");
        let remedy =
            format!("DHCP or the modem gives one: `ip address show {device}`; then, unless it does it, {commands}");
        return Cause { kind: CauseKind::NoAddress, text, remedy };
    }
    Cause { kind: CauseKind::NoRoute, text: since, remedy: commands }
}

/// Whether a table is RT_TABLE_MAIN.
fn is_main(table: u32) -> bool {
    table == 254
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use std::path::Path;

    fn config(keys: &str, uplinks: &[&str]) -> TunnelConfig {
        let text = format!(
            "[interface]\naddress = '10.77.0.1/24'\nprivate-key = 'IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM='\n{keys}\n\
             [[peer]]\npublic-key = 'R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y='\nallowed-ips = '10.77.0.2/32'\n\
             endpoint = '192.0.2.1'\n"
        );
        let mut config = config::parse("x", &text, Path::new("rw0.toml")).expect("a good file");
        config.paths = uplinks
            .iter()
            .map(|name| ConfiguredPath { automatic: true, ..ConfiguredPath::any(0, (*name).to_owned()) })
            .collect();
        config
    }

    #[test]
    fn a_lost_uplink_stays_in_view_for_an_hour_and_one_without_a_device_leaves_at_once() {
        let auto = "uplinks = 'auto'";
        let start = Instant::now();
        let none = config(auto, &[]);
        let route = Route { device: 7, gateway: "192.168.8.1".parse().ok(), table: 254, metric: 700 };
        let mut seen = SeenUplinks::default();
        let devices = Devices::default();
        assert_eq!(seen.update(&config(auto, &["gone0"]), &DefaultRoutes::new(), &devices, start), []);
        assert!(seen.lost(&none, &devices).is_empty());
        let events = seen.update(&none, &DefaultRoutes::new(), &devices, start);
        let gone: Vec<_> = events.iter().map(|event| (event.path.as_deref(), event.level)).collect();
        assert_eq!(gone, [(Some("gone0"), EventLevel::Warn)]);
        assert!(seen.lost(&none, &devices).is_empty());

        let devices = Devices::with_device("wwan0");
        let one = config(auto, &["wwan0"]);
        let routes = DefaultRoutes::from([("wwan0".to_owned(), vec![(true, route)])]);
        assert_eq!(seen.update(&one, &routes, &devices, start), []);
        let later = start + VIEW_TIME;
        assert_eq!(seen.update(&none, &DefaultRoutes::new(), &devices, start), []);
        assert_eq!(seen.update(&none, &DefaultRoutes::new(), &devices, later), []);
        let lost = seen.lost(&none, &devices);
        assert_eq!(lost.len(), 1);
        let cause = lost[0].1.cause.clone().expect("it has one");
        assert!(cause.remedy.contains("`ip route add default via 192.168.8.1 dev wwan0 metric 700`"), "{cause:?}");
        let events = seen.update(&none, &DefaultRoutes::new(), &devices, later + Duration::from_secs(1));
        assert_eq!(events.len(), 1, "an hour is over");

        seen.update(&one, &routes, &devices, later);
        let excluded = config("uplinks = { exclude = ['wwan*'] }", &[]);
        assert_eq!(seen.update(&excluded, &DefaultRoutes::new(), &devices, later).len(), 1);
        assert!(seen.lost(&excluded, &devices).is_empty());
    }
}
