//! The control thread's handle to the data thread: commands in one direction, reports turned into a status in the
//! other.

use super::path_assignment::PathAssignment;
use super::status_builder::StatusBuilder;
use crate::config::TunnelConfig;
use crate::control_plane::{ChangeReply, DataPlaneHandle};
use crate::data_plane::{Command, CommandSender, LinkEvent, Update};
use crate::status::TunnelStatus;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// A handle that sends commands.
pub(super) struct CommandHandle {
    commands: CommandSender,
    start: Sender<()>,
    shared: Arc<Mutex<Shared>>,
}

/// State of both threads. The lock is held only to copy numbers; it is poisoned only if this code panicked.
struct Shared {
    assignment: PathAssignment,
    builder: StatusBuilder,
}

impl CommandHandle {
    pub(super) fn new(
        commands: CommandSender,
        start: Sender<()>,
        config: &TunnelConfig,
        assignment: PathAssignment,
    ) -> Self {
        let builder = StatusBuilder::new(config, &assignment);
        Self { commands, start, shared: Arc::new(Mutex::new(Shared { assignment, builder })) }
    }
}

impl DataPlaneHandle for CommandHandle {
    fn start(&self) {
        // If the data thread has ended, the next request of the status fails.
        let _ = self.start.send(());
    }

    fn request_status(&self, reply: Box<dyn FnOnce(TunnelStatus) + Send>) -> bool {
        let shared = Arc::clone(&self.shared);
        self.commands.send(Command::Report(Box::new(move |report| {
            let Ok(mut shared) = shared.lock() else { return };
            reply(shared.builder.build(&report));
        })))
    }

    fn change(&self, config: &TunnelConfig, reply: ChangeReply) {
        let (shared, commands, config) = (Arc::clone(&self.shared), self.commands.clone(), config.clone());
        if config.mpt().is_some() {
            // No other change that is allowed concerns the data plane.
            let networks = config.peers[0].allowed_ips.clone();
            let on_done = move || {
                if let Ok(mut shared) = shared.lock() {
                    shared.builder.change(&config, &PathAssignment::default());
                }
                reply(Ok(Vec::new()));
            };
            commands.send(Command::AllowedIps(networks, Box::new(on_done)));
            return;
        }
        // Host names are resolved on a thread of its own, so that the control loop does not wait.
        std::thread::spawn(move || change(&shared, &commands, config, reply));
    }

    fn on_link_event(&self, device: &str, event: LinkEvent) {
        self.commands.send(Command::Link { device: device.to_owned(), event });
    }

    fn stop(&self) {
        self.commands.send(Command::Stop);
    }
}

/// Assigns sockets and path ids for the new configuration, and sends it to the data plane.
fn change(shared: &Arc<Mutex<Shared>>, commands: &CommandSender, config: TunnelConfig, reply: ChangeReply) {
    let Ok(previous) = shared.lock().map(|shared| shared.assignment.clone()) else { return };
    let assignment = match PathAssignment::new(&config, &previous) {
        Ok(assignment) => assignment,
        Err(error) => return reply(Err(error.to_string())),
    };
    let update = Update { mtu: config.mtu(), sockets: assignment.sockets.clone(), peers: assignment.peers.clone() };
    let shared = Arc::clone(shared);
    let on_result = move |result: Result<Vec<String>, crate::data_plane::Error>| {
        if let (true, Ok(mut shared)) = (result.is_ok(), shared.lock()) {
            shared.builder.change(&config, &assignment);
            shared.assignment = assignment;
        }
        reply(result.map_err(|error| error.to_string()));
    };
    // If the data thread has ended, the reply is dropped, which the control loop notices.
    commands.send(Command::Update(Box::new(update), Box::new(on_result)));
}
