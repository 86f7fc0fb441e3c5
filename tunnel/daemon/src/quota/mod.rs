//! Quotas: a limit on the traffic of a path until a day of the month, and the count of its traffic.
//!
//! The count includes all IP packets of the path's sockets, sent and received, of all peers: data, handshakes and
//! probes. A path whose count has reached its quota is metered until the reset: a backup at both ends, and rarely
//! probed. Resets are at midnight UTC. A clock that is set back resets nothing, and neither does a change of the reset
//! day.

mod calendar;
mod file;

pub(crate) use calendar::date;

use crate::config::ConfiguredPath;
use crate::event::{Event, EventKind, EventLevel};
use crate::kept_file::Place;
use crate::show::decimal_bytes;
use crate::status::{QuotaStatus, UplinkStatus};
use calendar::next_reset;
use file::{Counter, QuotaFile};
use nix::unistd::User;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The share of a quota from which a warning is given, percent.
const WARNING_PERCENT: u64 = 80;
/// Changed counts are written after this time...
const WRITE_INTERVAL_S: u64 = 60;
/// ... and at once if the unwritten bytes are this fraction of the quota.
const WRITE_PARTS: u64 = 1000;
/// Maximum time until a reset. A later reset shows that the clock was or is wrong.
const MAX_PERIOD_S: u64 = 32 * 86_400;

/// The quota of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Limit on sent and received bytes together.
    pub bytes: u64,
    /// The day of the month on which the count is reset, 1 to 31.
    pub reset_day: u8,
}

/// How much of a quota is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Normal,
    Warned,
    Exceeded,
}

/// A path's quota and how much of it is used.
#[derive(Debug)]
struct Watched {
    quota: Quota,
    /// `None` before the first check after the start.
    level: Option<Level>,
}

/// Counts the traffic of paths, and determines which are over their quotas.
#[derive(Debug, Default)]
pub(crate) struct QuotaKeeper {
    /// The path of the file, which may not exist yet; `None` if there is no state directory.
    path: Option<PathBuf>,
    file: Option<QuotaFile>,
    is_opened: bool,
    counters: Vec<Counter>,
    /// The latest totals of each path, sent and received.
    totals: BTreeMap<String, [u64; 2]>,
    /// By the path's name.
    watched: BTreeMap<String, Watched>,
    /// The bytes counted since the file was written.
    unwritten_bytes: u64,
    written_s: u64,
    has_write_failed: bool,
    is_clock_told: bool,
}

impl Level {
    fn of(counter: &Counter, quota: Quota) -> Self {
        let used = counter.used();
        if used >= quota.bytes {
            Self::Exceeded
        } else if u128::from(used) * 100 >= u128::from(quota.bytes) * u128::from(WARNING_PERCENT) {
            Self::Warned
        } else {
            Self::Normal
        }
    }
}

impl Counter {
    fn used(&self) -> u64 {
        self.sent_bytes.saturating_add(self.received_bytes)
    }
}

impl QuotaKeeper {
    /// A keeper whose file is at `path`. It is opened now if `has_quotas` or if it exists, while other users' folders
    /// can still be written. The file will belong to `user`. Returns the events to report.
    pub(crate) fn open(path: Option<PathBuf>, has_quotas: bool, user: Option<&User>) -> (Self, Vec<Event>) {
        let mut keeper = Self { path, ..Self::default() };
        let is_there = keeper.path.as_ref().is_some_and(|path| path.exists());
        let events = if has_quotas || is_there { keeper.open_file(user) } else { Vec::new() };
        (keeper, events)
    }

    fn open_file(&mut self, user: Option<&User>) -> Vec<Event> {
        self.is_opened = true;
        let in_memory = "quotas are counted in memory, and a restart begins at 0";
        let Some(path) = &self.path else {
            let remedy = "`mkdir /var/lib/ropewalk`, and restart";
            return vec![warning(format!("there is no state directory: {in_memory}"), remedy)];
        };
        match Place::new(path, user).and_then(|place| QuotaFile::open(&place)) {
            Ok((file, counters, aside)) => {
                (self.file, self.counters) = (Some(file), counters);
                let told = |aside: PathBuf| {
                    let message = format!("{} is damaged: quotas are counted from 0", path.display());
                    warning(message, &format!("it is kept as {}", aside.display()))
                };
                aside.map(told).into_iter().collect()
            }
            Err(error) => {
                let remedy = format!("fix or remove {}, and restart", path.display());
                vec![warning(format!("{}: {error}: {in_memory}", path.display()), &remedy)]
            }
        }
    }

    /// Whether a path is over its quota.
    pub(crate) fn is_exceeded(&self, path: &str) -> bool {
        self.watched.get(path).is_some_and(|watched| watched.level == Some(Level::Exceeded))
    }

    /// The quotas by the paths' names.
    pub(crate) fn statuses(&self) -> BTreeMap<String, QuotaStatus> {
        let status = |(name, watched): (&String, &Watched)| {
            let counter = self.counters.iter().find(|counter| counter.path == *name)?;
            let status = QuotaStatus {
                limit_bytes: watched.quota.bytes,
                used_bytes: counter.used(),
                exceeded: watched.level == Some(Level::Exceeded),
                resets_unix_ms: counter.resets_s.saturating_mul(1000),
            };
            Some((name.clone(), status))
        };
        self.watched.iter().filter_map(status).collect()
    }

    /// Takes the totals of the paths since the start of the daemon, at the time `now_s` since the Unix epoch. Returns
    /// the events.
    pub(crate) fn update(&mut self, now_s: u64, paths: &[ConfiguredPath], uplinks: &[UplinkStatus]) -> Vec<Event> {
        let with_quota = || paths.iter().filter_map(|path| Some((path, path.quota?)));
        let mut events =
            if self.is_opened || with_quota().next().is_none() { Vec::new() } else { self.open_file(None) };
        self.watched.retain(|name, _| with_quota().any(|(path, _)| path.name == *name));
        for (path, quota) in with_quota() {
            events.extend(self.follow(now_s, path, quota));
        }
        self.count(uplinks);
        for (path, quota) in with_quota() {
            events.extend(self.change_level(path, quota));
        }
        let is_part = with_quota().any(|(_, quota)| self.unwritten_bytes >= quota.bytes / WRITE_PARTS);
        let is_time = now_s.abs_diff(self.written_s) >= WRITE_INTERVAL_S;
        if !events.is_empty() || self.unwritten_bytes > 0 && (is_part || is_time) {
            self.written_s = now_s;
            events.extend(self.write());
        }
        events
    }

    /// Adds a counter for a new path, and resets one whose time has come.
    fn follow(&mut self, now_s: u64, path: &ConfiguredPath, quota: Quota) -> Option<Event> {
        let watched = self.watched.entry(path.name.clone()).or_insert(Watched { quota, level: None });
        watched.quota = quota;
        let Some(counter) = self.counters.iter_mut().find(|counter| counter.path == path.name) else {
            // Counters of removed paths make room after their reset time.
            self.counters.retain(|counter| counter.resets_s > now_s || self.watched.contains_key(&counter.path));
            let resets_s = next_reset(now_s, quota.reset_day);
            let (path, reset_day) = (path.name.clone(), quota.reset_day);
            self.counters.push(Counter { path, sent_bytes: 0, received_bytes: 0, resets_s, reset_day });
            return None;
        };
        if counter.reset_day != quota.reset_day {
            (counter.reset_day, counter.resets_s) = (quota.reset_day, next_reset(now_s, quota.reset_day));
        }
        if now_s < counter.resets_s {
            let is_wrong = counter.resets_s - now_s > MAX_PERIOD_S;
            if !is_wrong || std::mem::replace(&mut self.is_clock_told, true) {
                return None;
            }
            let message = format!(
                "the clock says {}, and the next quota period begins on {}: the clock is or was wrong",
                date(now_s),
                date(counter.resets_s)
            );
            return Some(of_path(
                path,
                warning(message, "set the clock, or change `quota-reset-day` and change it back"),
            ));
        }
        let used = counter.used();
        let was_exceeded = watched.level == Some(Level::Exceeded) || Level::of(counter, quota) == Level::Exceeded;
        (counter.sent_bytes, counter.received_bytes) = (0, 0);
        counter.resets_s = next_reset(now_s, quota.reset_day);
        watched.level = Some(Level::Normal);
        let role =
            if was_exceeded { format!(", and the path is {} again", configured_role(path)) } else { String::new() };
        let message = format!(
            "a new quota period has begun, until {}{role}; {} of {} were used",
            date(counter.resets_s),
            decimal_bytes(used),
            decimal_bytes(quota.bytes)
        );
        Some(of_path(path, Event::new(EventLevel::Info, EventKind::Quota, message)))
    }

    /// Adds the traffic of paths since the latest totals.
    fn count(&mut self, uplinks: &[UplinkStatus]) {
        for uplink in uplinks {
            let totals = [uplink.sent.bytes, uplink.received.bytes];
            let earlier = self.totals.insert(uplink.name.clone(), totals).unwrap_or_default();
            let Some(counter) = self.counters.iter_mut().find(|counter| counter.path == uplink.name) else { continue };
            if !self.watched.contains_key(&uplink.name) {
                continue;
            }
            // A counter that has decreased belongs to a new socket.
            let [sent, received] =
                [0, 1].map(|index| totals[index].checked_sub(earlier[index]).unwrap_or(totals[index]));
            counter.sent_bytes = counter.sent_bytes.saturating_add(sent);
            counter.received_bytes = counter.received_bytes.saturating_add(received);
            self.unwritten_bytes = self.unwritten_bytes.saturating_add(sent).saturating_add(received);
        }
    }

    fn change_level(&mut self, path: &ConfiguredPath, quota: Quota) -> Option<Event> {
        let counter = self.counters.iter().find(|counter| counter.path == path.name)?;
        let watched = self.watched.get_mut(&path.name)?;
        let level = Level::of(counter, quota);
        let earlier = watched.level.replace(level);
        let used = format!("{} of {} are used", decimal_bytes(counter.used()), decimal_bytes(quota.bytes));
        let reset = date(counter.resets_s);
        let event = match (earlier, level) {
            (earlier, level) if earlier == Some(level) => return None,
            (_, Level::Exceeded) => {
                let role = if path.is_backup() { "it stays a backup, and" } else { "it is a backup and" };
                let message =
                    format!("over its quota: {used}; {role} carries data only if no other path works, until {reset}");
                warning(message, "raise `quota` of this path and `ropewalk reload`; or wait for the reset")
            }
            (Some(Level::Exceeded), _) => {
                let message = format!("no longer over its quota: {used}; the path is {} again", configured_role(path));
                Event::new(EventLevel::Info, EventKind::Quota, message)
            }
            (Some(Level::Normal), Level::Warned) => {
                let message = format!("{WARNING_PERCENT} % of its quota: {used}, until {reset}");
                warning(message, "beyond the quota the path is a backup; `secondary = true` uses it less")
            }
            _ => return None,
        };
        Some(of_path(path, event))
    }

    /// Writes the counts. Returns an event about a failure, once.
    pub(crate) fn write(&mut self) -> Option<Event> {
        self.unwritten_bytes = 0;
        let error = self.file.as_mut()?.write(&self.counters).err();
        let has_failed = std::mem::replace(&mut self.has_write_failed, error.is_some());
        let error = error.filter(|_| !has_failed)?;
        Some(warning(format!("the counts of quotas are not written: {error}"), "make room in the state directory"))
    }
}

/// The role of a path in the configuration.
fn configured_role(path: &ConfiguredPath) -> &'static str {
    match (path.metered, path.backup, path.secondary) {
        (true, _, _) => "metered",
        (false, true, _) => "a backup",
        (false, false, true) => "secondary",
        (false, false, false) => "regular",
    }
}

fn warning(message: String, remedy: &str) -> Event {
    Event { remedy: Some(remedy.to_owned()), ..Event::new(EventLevel::Warn, EventKind::Quota, message) }
}

fn of_path(path: &ConfiguredPath, event: Event) -> Event {
    Event { path: Some(path.name.clone()), ..event }
}

#[cfg(test)]
mod tests;
