//! The control thread's hand on the data thread: commands one way, reports made into a status the other way.

use super::layout::Layout;
use super::told::Told;
use crate::config::{Config, Mode};
use crate::control::{Answer, DataPlane};
use crate::plane::{Command, Commander, Link, Update};
use crate::status::Status;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

pub(super) struct Bridge {
    commander: Commander,
    go: Sender<()>,
    shared: Arc<Mutex<Shared>>,
}

/// What both threads look at. It is locked for the copying of numbers only; a poisoned lock would mean that this very code
/// panicked.
struct Shared {
    layout: Layout,
    told: Told,
}

impl Bridge {
    pub(super) fn new(commander: Commander, go: Sender<()>, config: &Config, layout: Layout) -> Self {
        let told = Told::new(config, &layout);
        Self { commander, go, shared: Arc::new(Mutex::new(Shared { layout, told })) }
    }
}

impl DataPlane for Bridge {
    fn start(&self) {
        // If the data thread is gone, the next question finds out.
        let _ = self.go.send(());
    }

    fn ask(&self, answer: Box<dyn FnOnce(Status) + Send>) -> bool {
        let shared = Arc::clone(&self.shared);
        self.commander.send(Command::Report(Box::new(move |report| {
            let Ok(mut shared) = shared.lock() else { return };
            answer(shared.told.tell(&report));
        })))
    }

    fn change(&self, wanted: &Config, answer: Answer) {
        let (shared, commander, wanted) = (Arc::clone(&self.shared), self.commander.clone(), wanted.clone());
        if matches!(wanted.mode, Mode::Mpt(_)) {
            // All packets go to the one peer, and what else can change is no business of the data plane's.
            if let Ok(mut shared) = shared.lock() {
                shared.told.change(&wanted, &Layout::default());
            }
            return answer(Ok(Vec::new()));
        }
        // Looking names up may take a while, and the control loop has other things to do.
        std::thread::spawn(move || change(&shared, &commander, wanted, answer));
    }

    fn link(&self, device: &str, link: Link) {
        self.commander.send(Command::Link { device: device.to_owned(), link });
    }

    fn stop(&self) {
        self.commander.send(Command::Stop);
    }
}

/// Lays the wanted configuration out and has the data plane become it.
fn change(shared: &Arc<Mutex<Shared>>, commander: &Commander, wanted: Config, answer: Answer) {
    let Ok(before) = shared.lock().map(|shared| shared.layout.clone()) else { return };
    let layout = match Layout::of(&wanted, &before) {
        Ok(layout) => layout,
        Err(error) => return answer(Err(error.to_string())),
    };
    let update = Update { mtu: wanted.mtu(), sockets: layout.sockets.clone(), peers: layout.peers.clone() };
    let shared = Arc::clone(shared);
    let done = move |done: Result<Vec<String>, crate::plane::Error>| {
        if let (true, Ok(mut shared)) = (done.is_ok(), shared.lock()) {
            shared.told.change(&wanted, &layout);
            shared.layout = layout;
        }
        answer(done.map_err(|error| error.to_string()));
    };
    // If the data thread is gone, the answer is dropped, which says so.
    commander.send(Command::Update(Box::new(update), Box::new(done)));
}
