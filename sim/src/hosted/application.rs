//! The application of a hosted connection: a transfer, or a client that asks on several streams at once.

use crate::protocol::{End, Host};
use record::Distribution;
use scenario::model::{Hosted, HostedRequests, Requests};
use stack::{Endpoint, Read};
use units::{Instant, Rate, RngStream, Span};

/// The application, which plays both ends.
#[derive(Debug)]
pub(super) enum Application {
    /// The sender connects, and writes on one stream.
    Transfer(Transfer),
    /// The receiver connects, and asks; the sender answers.
    Requests(Client),
}

impl Application {
    /// The application of flow `name`, whose writes are of `chunk` bytes if it writes at a rate.
    pub(super) fn new(model: &Hosted, name: &str, chunk: u64, seed: u64) -> Self {
        match &model.requests {
            Some(requests) => Self::Requests(Client::new(requests, Requests::random_stream(seed, name))),
            None => Self::Transfer(Transfer::new(model.size, model.rate, chunk)),
        }
    }

    /// The end that connects.
    pub(super) fn opener(&self) -> End {
        match self {
            Self::Transfer(_) => End::Sender,
            Self::Requests(_) => End::Receiver,
        }
    }

    /// Offers what an end has to write. Returns whether the stack has taken some.
    pub(super) fn write(&mut self, end: End, endpoint: &mut dyn Endpoint, host: &Host<'_>) -> bool {
        match self {
            Self::Transfer(transfer) => end == End::Sender && transfer.write(endpoint, host),
            Self::Requests(client) => client.write(end, endpoint, host),
        }
    }

    /// An end has read something.
    pub(super) fn on_read(&mut self, end: End, read: Read, now: Instant) {
        match self {
            Self::Transfer(transfer) => transfer.on_read(read, now),
            Self::Requests(client) => client.on_read(end, read, now),
        }
    }

    /// Whether the receiver has all that it will ever get.
    pub(super) fn is_over(&self, host: &Host<'_>) -> bool {
        match self {
            Self::Transfer(transfer) => transfer.is_over,
            Self::Requests(client) => host.now() >= host.stop && !client.waits(),
        }
    }

    /// The next time at which an end writes if nothing arrives.
    pub(super) fn deadline(&self, end: End, host: &Host<'_>) -> Instant {
        if end != self.opener() || host.now() >= host.stop {
            return Instant::NEVER;
        }
        let next = match self {
            Self::Transfer(transfer) => transfer.next().map_or(Instant::NEVER, |time| host.start + time),
            Self::Requests(client) => client.next(),
        };
        next.min(host.stop)
    }

    /// Bytes that the receiver has read.
    pub(super) fn delivered(&self) -> u64 {
        match self {
            Self::Transfer(transfer) => transfer.read,
            Self::Requests(client) => client.read,
        }
    }

    /// Whether there are always data to send.
    pub(super) fn is_greedy(&self) -> bool {
        matches!(self, Self::Transfer(transfer) if transfer.rate.is_none())
    }

    /// When all data had arrived.
    pub(super) fn completed(&self) -> Option<Instant> {
        match self {
            Self::Transfer(transfer) => transfer.completed,
            Self::Requests(_) => None,
        }
    }

    /// The times from each request to the last byte of its answer.
    pub(super) fn response_times(&self) -> Option<&Distribution> {
        match self {
            Self::Transfer(_) => None,
            Self::Requests(client) => Some(&client.times),
        }
    }

    pub(super) fn leave_out_distributions(&mut self) {
        if let Self::Requests(client) = self {
            client.times.turn_off();
        }
    }
}

/// Data, which are there at once or produced at a rate, on stream 0.
#[derive(Debug)]
pub(super) struct Transfer {
    /// The size of the data and the rate at which they are produced.
    size: Option<u64>,
    rate: Option<Rate>,
    /// Bytes that are produced at once.
    chunk: u64,
    produced: u64,
    written: u64,
    has_finished: bool,
    read: u64,
    completed: Option<Instant>,
    is_over: bool,
}

impl Transfer {
    fn new(size: Option<u64>, rate: Option<Rate>, chunk: u64) -> Self {
        let produced = if rate.is_some() { 0 } else { size.unwrap_or(u64::MAX) };
        Self { size, rate, chunk, produced, written: 0, has_finished: false, read: 0, completed: None, is_over: false }
    }

    /// The time after the start at which the next data are produced.
    fn next(&self) -> Option<Span> {
        let rate = self.rate.filter(|_| self.size != Some(self.produced))?;
        Some(rate.time_for(self.produced + self.chunk))
    }

    /// Produces data until this time after the start.
    fn produce(&mut self, time: Span) {
        while self.next().is_some_and(|next| next <= time) {
            self.produced = (self.produced + self.chunk).min(self.size.unwrap_or(u64::MAX));
        }
    }

    fn write(&mut self, endpoint: &mut dyn Endpoint, host: &Host<'_>) -> bool {
        let now = host.now();
        let stops = now >= host.stop;
        self.produce(now.since(host.start));
        let available = if stops { 0 } else { self.produced - self.written };
        let written = if available > 0 { endpoint.write(now, 0, available) } else { 0 };
        self.written += written;
        if !self.has_finished && (stops || self.size == Some(self.written)) {
            self.has_finished = true;
            endpoint.finish(now, 0);
        }
        written > 0
    }

    fn on_read(&mut self, read: Read, now: Instant) {
        self.read += read.bytes;
        self.is_over |= read.is_finished;
        if self.completed.is_none() && self.size.is_some_and(|size| self.read >= size) {
            self.completed = Some(now);
        }
    }
}

/// A client with several requests under way at once, as HTTP/3 has them. Each is on a stream of its own.
#[derive(Debug)]
pub(super) struct Client {
    model: Requests,
    rng: RngStream,
    /// What each of those under way does.
    states: Vec<State>,
    /// The size of each stream's answer, bytes.
    sizes: Vec<u64>,
    /// What each end has to write.
    outgoing: [Vec<Outgoing>; 2],
    read: u64,
    times: Distribution,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The next request is at this time.
    Thinks(Instant),
    /// A request was made at this time.
    Waits { stream: u64, since: Instant },
}

/// Data for a stream.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    stream: u64,
    bytes: u64,
}

impl Client {
    fn new(model: &HostedRequests, rng: RngStream) -> Self {
        Self {
            model: model.requests,
            rng,
            states: vec![State::Thinks(Instant::ZERO); model.streams as usize],
            sizes: Vec::new(),
            outgoing: [Vec::new(), Vec::new()],
            read: 0,
            times: Distribution::default(),
        }
    }

    /// The time of the next request.
    fn next(&self) -> Instant {
        let times = self.states.iter().filter_map(|state| match state {
            State::Thinks(until) => Some(*until),
            State::Waits { .. } => None,
        });
        times.min().unwrap_or(Instant::NEVER)
    }

    fn write(&mut self, end: End, endpoint: &mut dyn Endpoint, host: &Host<'_>) -> bool {
        let now = host.now();
        if end == End::Receiver && now < host.stop {
            self.ask(now);
        }
        let mut has_written = false;
        self.outgoing[end as usize].retain_mut(|data| {
            let written = endpoint.write(now, data.stream, data.bytes);
            (data.bytes, has_written) = (data.bytes - written, has_written || written > 0);
            if data.bytes == 0 {
                endpoint.finish(now, data.stream);
            }
            data.bytes > 0
        });
        has_written
    }

    /// Makes the requests that are due.
    fn ask(&mut self, now: Instant) {
        for state in &mut self.states {
            if matches!(state, State::Thinks(until) if *until <= now) {
                let stream = self.sizes.len() as u64;
                *state = State::Waits { stream, since: now };
                self.sizes.push(self.model.next_size(&mut self.rng));
                let request = Outgoing { stream, bytes: Requests::REQUEST_BYTES.into() };
                self.outgoing[End::Receiver as usize].push(request);
            }
        }
    }

    fn waits(&self) -> bool {
        self.states.iter().any(|state| matches!(state, State::Waits { .. }))
    }

    fn on_read(&mut self, end: End, read: Read, now: Instant) {
        match end {
            End::Sender if read.is_finished => {
                let bytes = self.sizes[read.stream as usize];
                self.outgoing[End::Sender as usize].push(Outgoing { stream: read.stream, bytes });
            }
            End::Sender => {}
            End::Receiver => {
                self.read += read.bytes;
                if read.is_finished {
                    self.on_answer(read.stream, now);
                }
            }
        }
    }

    fn on_answer(&mut self, answered: u64, now: Instant) {
        let is_answered = |state: &State| matches!(state, State::Waits { stream, .. } if *stream == answered);
        let Some(state) = self.states.iter_mut().find(|state| is_answered(state)) else { return };
        if let State::Waits { since, .. } = *state {
            self.times.add(now.since(since));
        }
        *state = State::Thinks(now + self.model.next_think(&mut self.rng));
    }
}
