//! Transport protocols that others have implemented, as endpoints of a simulated network.
//!
//! A [`StackEntry`] makes the two [`Endpoint`]s of a connection. The simulator calls them with the time, hands them the
//! datagrams that cross its links, and plays the application: the first endpoint connects and opens streams, and both write
//! on them and read.
//! Both must be deterministic: no clock, no thread, and no randomness other than [`Setup::seed`].
//!
//! A program [`register`]s the stacks that it contains, and a scenario names one of them: `kind = "hosted"`, `stack = "..."`.
//!
//! # Order of calls
//! After each call of `on_timeout`, `receive`, `connect`, `write`, `finish`, `read` or `close`, the simulator calls
//! [`poll_transmit`](Endpoint::poll_transmit) until it returns nothing, and then asks for the
//! [`deadline`](Endpoint::deadline). It calls `on_timeout` at that time, never earlier.

mod entry;

pub use entry::{Constructor, DynConstructor, OWN, Setup, StackEntry, entries, find, register};

use link::EcnField;
use units::{Instant, Rate, Span};

/// One end of a connection, in virtual time.
pub trait Endpoint: std::fmt::Debug + Send {
    /// When [`on_timeout`](Self::on_timeout) is to be called; `Instant::NEVER` without a timer.
    fn deadline(&mut self) -> Instant;

    /// The deadline has come.
    fn on_timeout(&mut self, now: Instant);

    /// A datagram has arrived.
    fn receive(&mut self, now: Instant, datagram: Datagram<'_>);

    /// Writes the next datagram that is to be sent now into `buffer`, which is empty. None if nothing is to be sent before
    /// the next call of another method.
    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit>;

    /// Opens the connection. Called once, of the first endpoint, when the flow starts.
    fn connect(&mut self, now: Instant);

    /// The application has `bytes` to send on a stream. Returns how many of them the endpoint takes now; the application
    /// offers the rest again after every call. Streams are counted from zero. The first endpoint opens each, in their order,
    /// by its first write; the second one writes on those that it has read from.
    fn write(&mut self, now: Instant, stream: u64, bytes: u64) -> u64;

    /// The application has written all its data on a stream, and the endpoint has taken it.
    fn finish(&mut self, now: Instant, stream: u64);

    /// The application reads what has arrived in order on a stream. None if there is nothing more to read on any of them.
    fn read(&mut self, now: Instant) -> Option<Read>;

    /// The application no longer needs the connection. Called once at most, of the end that got the data.
    fn close(&mut self, now: Instant);

    /// What is known of a path.
    fn path(&self, path: u16) -> PathStatus;

    /// Why the connection was lost, if it was.
    fn error(&self) -> Option<String>;
}

/// Data that an application has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The stream, counted from zero.
    pub stream: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// Whether they are the stream's last.
    pub is_finished: bool,
}

/// A datagram that has crossed a path.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The path, counted from zero in the order of the scenario.
    pub path: u16,
    /// The payload of UDP.
    pub bytes: &'a [u8],
    /// The ECN field with which it arrived.
    pub ecn: EcnField,
}

/// The way of a datagram that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The path, counted from zero in the order of the scenario.
    pub path: u16,
    /// The ECN field.
    pub ecn: EcnField,
}

/// The state of an endpoint's path. A stack that does not tell a value leaves it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStatus {
    /// The congestion window, bytes.
    pub cwnd: Option<u64>,
    /// The smoothed RTT.
    pub srtt: Option<Span>,
    /// The pacing rate.
    pub pacing_rate: Option<Rate>,
    /// Packets declared lost.
    pub lost: Option<u64>,
}
