//! What ends a run, by a driver that counts.

use super::server::Explorer;
use super::source::Sources;
use record::Run;
use runner::{Checked, Driver, Error, Job, Simulator};
use scenario::Scenario;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testing::eventually;
use tokio::net::TcpListener;

/// The simulator, with the number of runs that have begun and of those that were cancelled.
#[derive(Clone, Debug, Default)]
struct Counting {
    begun: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

impl Driver for Counting {
    fn describe(&self, scenario: &Scenario) -> String {
        Simulator.describe(scenario)
    }

    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Error> {
        Simulator.check(scenario, partial)
    }

    fn jobs(&self, scenario: &Scenario) -> usize {
        Simulator.jobs(scenario)
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let run = Simulator.run(job);
        if matches!(run, Ok(None)) {
            self.cancelled.fetch_add(1, Ordering::SeqCst);
        }
        run
    }

    fn setup(&self, scenario: &Scenario) -> Option<String> {
        Simulator.setup(scenario)
    }
}

/// A server on another thread, which ends with the test's process.
fn serve(driver: Counting) -> (SocketAddr, String) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let explorer = Explorer::new(address, Sources::new(None).unwrap(), Box::new(driver)).unwrap();
            sender.send((address, explorer.url())).unwrap();
            explorer.serve(listener).await.unwrap();
        });
    });
    let (address, url) = receiver.recv().unwrap();
    (address, url.split_once("token=").unwrap().1.to_owned())
}

fn ask(address: SocketAddr, token: &str, sets: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = format!(r#"{{"scenario": "one-link", "sets": [{sets}]}}"#);
    let head = format!(
        "POST /v1/run HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    write!(stream, "{head}{body}").unwrap();
    stream
}

/// A run that no test outlives: years of virtual time.
const ENDLESS: &str = r#""duration=100000000s", "sample=10000000s""#;

#[test]
fn a_closed_connection_stops_its_run_and_gives_its_place_to_the_next() {
    let driver = Counting::default();
    let (address, token) = serve(driver.clone());
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    let places = runner::available_cores();
    let questions: Vec<_> = (0..=places).map(|_| ask(address, &token, ENDLESS)).collect();
    assert!(eventually(|| count(&driver.begun) == places), "{driver:?}");
    assert_eq!(count(&driver.cancelled), 0);
    // One question more than there are places waits, and has a place when another tab is closed.
    let mut questions = questions.into_iter();
    drop(questions.next_back());
    drop(questions);
    assert!(eventually(|| count(&driver.cancelled) == places), "{driver:?}");
    let begun = count(&driver.begun);
    let _last = ask(address, &token, ENDLESS);
    assert!(eventually(|| count(&driver.begun) > begun), "{driver:?}");
}
