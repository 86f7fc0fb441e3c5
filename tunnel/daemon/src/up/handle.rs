//! The control thread's handle to the data threads: commands in one direction, reports turned into a status in the
//! other.

use super::path_assignment::PathAssignment;
use super::status_builder::StatusBuilder;
use crate::config::TunnelConfig;
use crate::control_plane::{ChangeReply, DataPlaneHandle, ResolveReply, SilentPath, StatusReply};
use crate::data_plane::{Command, CommandSender, LinkEvent, Report, Update};
use std::collections::BTreeSet;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};

/// The controls of one data thread.
pub(super) struct ThreadControl {
    pub(super) commands: CommandSender,
    /// The signal to drop its privileges and start.
    pub(super) start: Sender<()>,
}

/// A handle that sends commands.
pub(super) struct CommandHandle {
    /// The command channels by data thread.
    threads: Arc<[CommandSender]>,
    starts: Vec<Sender<()>>,
    shared: Arc<Mutex<Shared>>,
    /// Held from reading the assignment until the next one is in force.
    changing: Arc<Mutex<()>>,
}

/// State of all threads. The lock is held only to copy numbers; it is poisoned only if this code panicked.
struct Shared {
    config: TunnelConfig,
    assignment: PathAssignment,
    builder: StatusBuilder,
}

/// The reports of the data threads that have answered, and the closure that gets the sum.
struct PendingReport {
    missing: usize,
    sum: Option<Report>,
    reply: Option<StatusReply>,
}

impl CommandHandle {
    pub(super) fn new(threads: Vec<ThreadControl>, config: &TunnelConfig, assignment: PathAssignment) -> Self {
        let builder = StatusBuilder::new(config, &assignment);
        let (threads, starts): (Vec<_>, _) = threads.into_iter().map(|thread| (thread.commands, thread.start)).unzip();
        let shared = Shared { config: config.clone(), assignment, builder };
        Self { threads: threads.into(), starts, shared: Arc::new(Mutex::new(shared)), changing: Arc::default() }
    }
}

impl DataPlaneHandle for CommandHandle {
    fn start(&self) {
        // If a data thread has ended, the next request of the status fails.
        self.starts.iter().for_each(|start| {
            let _ = start.send(());
        });
    }

    fn request_status(&self, reply: StatusReply) -> bool {
        let pending = PendingReport { missing: self.threads.len(), sum: None, reply: Some(reply) };
        let pending = Arc::new(Mutex::new(pending));
        self.threads.iter().all(|thread| {
            let (pending, shared) = (Arc::clone(&pending), Arc::clone(&self.shared));
            thread.send(Command::Report(Box::new(move |report| {
                let Ok(mut pending) = pending.lock() else { return };
                pending.missing -= 1;
                match &mut pending.sum {
                    Some(sum) => sum.merge(report),
                    sum => *sum = Some(report),
                }
                if pending.missing == 0
                    && let (Some(report), Some(reply)) = (pending.sum.take(), pending.reply.take())
                {
                    reply(Box::new(move || Some(shared.lock().ok()?.builder.build(&report))));
                }
            })))
        })
    }

    fn change(&self, config: &TunnelConfig, reply: ChangeReply) {
        let (shared, threads, config) = (Arc::clone(&self.shared), Arc::clone(&self.threads), config.clone());
        if config.mpt().is_some() {
            // No other permitted change concerns the data plane.
            let networks = config.peers[0].allowed_ips.clone();
            let on_done = move || {
                if let Ok(mut shared) = shared.lock() {
                    shared.builder.change(&config, &PathAssignment::default());
                }
                reply(Ok(Vec::new()));
            };
            threads[0].send(Command::AllowedIps(networks, Box::new(on_done)));
            return;
        }
        // Host names are resolved on a separate thread, so that the control loop does not wait.
        let changing = Arc::clone(&self.changing);
        std::thread::spawn(move || {
            let _changing = changing.lock();
            // If a data thread has ended, the reply is dropped, which the control loop notices.
            if let Some(result) = change(&shared, &threads, config) {
                reply(result);
            }
        });
    }

    fn resolve(&self, silent: BTreeSet<SilentPath>, reply: ResolveReply) {
        let (shared, threads) = (Arc::clone(&self.shared), Arc::clone(&self.threads));
        let changing = Arc::clone(&self.changing);
        std::thread::spawn(move || {
            // A running attempt or reload already resolves the names.
            let Ok(_changing) = changing.try_lock() else { return };
            if let Some(changes) = resolve(&shared, &threads, &silent) {
                reply(changes);
            }
        });
    }

    fn on_link_event(&self, device: &str, event: LinkEvent) {
        send_link_event(&self.threads, 0, device.to_owned(), event);
    }

    fn stop(&self) {
        for thread in self.threads.iter() {
            thread.send(Command::Stop);
        }
    }
}

/// Sends a link event to the data threads one after the other: each gets it after the previous one has opened its
/// sockets.
fn send_link_event(threads: &Arc<[CommandSender]>, index: usize, device: String, event: LinkEvent) {
    let Some(thread) = threads.get(index) else { return };
    let (following, next_device) = (Arc::clone(threads), device.clone());
    let next = move || send_link_event(&following, index + 1, next_device, event);
    thread.send(Command::Link { device, event, next: Some(Box::new(next)) });
}

/// Assigns sockets, path ids and data threads for the new configuration, and makes the data plane apply it. Returns the
/// paths that wait for their device, or why nothing changed; `None` if a data thread has ended.
fn change(
    shared: &Mutex<Shared>,
    threads: &[CommandSender],
    config: TunnelConfig,
) -> Option<Result<Vec<String>, String>> {
    let previous = shared.lock().ok()?.assignment.clone();
    match PathAssignment::new(&config, &previous, &BTreeSet::new()) {
        Ok(assignment) => apply(shared, threads, config, assignment),
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Resolves the names without an address and those of silent paths again, and makes the data plane use new addresses.
fn resolve(shared: &Mutex<Shared>, threads: &[CommandSender], silent: &BTreeSet<SilentPath>) -> Option<Vec<String>> {
    let (config, previous) = {
        let shared = shared.lock().ok()?;
        (shared.config.clone(), shared.assignment.clone())
    };
    let assignment = PathAssignment::new(&config, &previous, silent).ok()?;
    let changes = assignment.resolved_changes(&previous);
    if changes.is_empty() || config.mpt().is_some() {
        return Some(Vec::new());
    }
    match apply(shared, threads, config, assignment)? {
        Ok(_) => Some(changes),
        Err(error) => Some(changes.into_iter().map(|change| format!("{change}; not used: {error}")).collect()),
    }
}

fn apply(
    shared: &Mutex<Shared>,
    threads: &[CommandSender],
    config: TunnelConfig,
    assignment: PathAssignment,
) -> Option<Result<Vec<String>, String>> {
    let previous = shared.lock().ok()?.assignment.clone();
    let result = update_threads(threads, &assignment, &previous)?;
    if result.is_ok() {
        let mut shared = shared.lock().ok()?;
        shared.builder.change(&config, &assignment);
        (shared.config, shared.assignment) = (config, assignment);
    }
    Some(result)
}

/// Makes the data threads change one after the other, all or none: sockets that share a port are opened in the order of
/// the threads, after all old ones are closed. `None` if a thread has ended.
fn update_threads(
    threads: &[CommandSender],
    assignment: &PathAssignment,
    previous: &PathAssignment,
) -> Option<Result<Vec<String>, String>> {
    let update_of = |assignment: &PathAssignment, thread: usize| {
        let (peers, other_peers) = assignment.split(thread as u8);
        Update { mtu: assignment.mtu, sockets: assignment.sockets.clone(), peers, other_peers }
    };
    let reopen = |threads: &[CommandSender]| {
        for thread in threads {
            thread.send(Command::Reopen);
        }
    };
    for (index, thread) in threads.iter().enumerate().filter(|_| threads.len() > 1) {
        let update = Arc::new(update_of(assignment, index));
        if let Err(error) = ask(thread, |reply| Command::Prepare(update, reply))? {
            reopen(&threads[..index]);
            return Some(Err(error.to_string()));
        }
    }
    let mut waiting = Vec::new();
    for (index, thread) in threads.iter().enumerate() {
        let update = Box::new(update_of(assignment, index));
        match ask(thread, |reply| Command::Update(update, reply))? {
            Ok(names) => waiting = names,
            Err(error) => {
                for (index, thread) in threads[..index].iter().enumerate() {
                    let earlier = Box::new(update_of(previous, index));
                    // It was valid before: a socket that fails now waits for its device.
                    let _ = ask(thread, |reply| Command::Update(earlier, reply))?;
                }
                reopen(&threads[index..]);
                return Some(Err(error.to_string()));
            }
        }
    }
    Some(Ok(waiting))
}

/// Sends a command and waits for its answer; `None` if the data thread has ended.
fn ask<T: Send + 'static>(
    thread: &CommandSender,
    command: impl FnOnce(Box<dyn FnOnce(T) + Send>) -> Command,
) -> Option<T> {
    let (sender, answer) = mpsc::channel();
    thread.send(command(Box::new(move |result| drop(sender.send(result)))));
    answer.recv().ok()
}
