//! Connections of hosted stacks: their datagrams are bytes, which cross the network as any packet does.

use crate::error::Error;
use crate::packet::{Body, Route};
use crate::protocol::{Arrival, Counters, End, Host, PathCounters, Protocol, SenderCounters};
use record::{Distribution, Flow};
use scenario::model::{Experiment, Flow as FlowModel, Hosted};
use stack::{Datagram, Endpoint, Setup};
use units::{Instant, Rate, RngStream, Span};

/// A UDP header, bytes.
const UDP_HEADER: u32 = 8;

/// Both ends of a connection of a hosted stack.
#[derive(Debug)]
pub(crate) struct HostedFlow {
    ends: [Box<dyn Endpoint>; 2],
    stack: String,
    congestion: String,
    paths: Vec<HostedPath>,
    /// IP and UDP headers, bytes.
    header_bytes: u32,
    /// The largest payload of UDP, bytes.
    max_datagram: u32,
    writer: Writer,
    /// Datagrams sent by each end.
    numbers: [u64; 2],
    read: u64,
    completed: Option<Instant>,
    /// The datagram that is being sent.
    buffer: Vec<u8>,
    rtt: Distribution,
}

/// A path of the connection.
#[derive(Debug)]
struct HostedPath {
    /// By its number in the experiment.
    index: usize,
    sent: u64,
    arrived_bytes: u64,
    rtt: Distribution,
}

/// The application, which has all its data at once or produces them at a rate.
#[derive(Debug)]
struct Writer {
    /// The size of the data and the rate at which they are produced.
    size: Option<u64>,
    rate: Option<Rate>,
    /// Bytes that are produced at once.
    chunk: u64,
    produced: u64,
    written: u64,
    has_finished: bool,
}

impl Writer {
    fn new(size: Option<u64>, rate: Option<Rate>, chunk: u64) -> Self {
        let produced = if rate.is_some() { 0 } else { size.unwrap_or(u64::MAX) };
        Self { size, rate, chunk, produced, written: 0, has_finished: false }
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
}

impl HostedFlow {
    pub(crate) fn new(experiment: &Experiment, flow: &FlowModel, model: &Hosted, seed: u64) -> Result<Self, Error> {
        let error = |reason: String| Error::Stack { flow: flow.name.clone(), reason };
        let name = &model.stack.name;
        let entry = stack::find(name).ok_or_else(|| error(format!("this program has no stack called `{name}`")))?;
        let params = entry.params(&model.stack.parameters).map_err(|fault| error(fault.to_string()))?;
        let header_bytes = model.ip_header + UDP_HEADER;
        let mtus = model.subflows.iter().map(|subflow| experiment.paths[subflow.path].mtu);
        let max_datagram = mtus.min().unwrap_or_default().saturating_sub(header_bytes);
        let setup = Setup {
            seed: RngStream::named(seed, &format!("flow {} stack", flow.name)).bits(),
            paths: model.subflows.len() as u16,
            max_datagram,
            congestion: model.congestion.as_ref(),
            params: &params,
        };
        let path = |index| HostedPath { index, sent: 0, arrived_bytes: 0, rtt: Distribution::default() };
        Ok(Self {
            ends: entry.endpoints(&setup).map_err(error)?,
            stack: name.clone(),
            congestion: model
                .congestion
                .as_ref()
                .map_or_else(|| format!("{}default", stack::OWN), |it| it.name.clone()),
            paths: model.subflows.iter().map(|subflow| path(subflow.path)).collect(),
            header_bytes,
            max_datagram,
            writer: Writer::new(model.size, model.rate, u64::from(max_datagram)),
            numbers: [0; 2],
            read: 0,
            completed: None,
            buffer: Vec::new(),
            rtt: Distribution::default(),
        })
    }

    /// Lets the application write or read, sends what the end has to send, and sets its timer.
    fn serve(&mut self, end: End, host: &mut Host<'_>) {
        match end {
            End::Sender => while self.write(host) && self.transmit(end, host) {},
            End::Receiver => self.read(host),
        }
        self.transmit(end, host);
        let mut deadline = self.ends[end as usize].deadline();
        if end == End::Sender && host.now() < host.stop {
            let write = self.writer.next().map_or(Instant::NEVER, |time| host.start + time);
            deadline = deadline.min(write).min(host.stop);
        }
        if deadline < Instant::NEVER {
            host.wake_at(end, deadline);
        }
    }

    /// Offers the application's data. Returns whether the stack has taken some.
    fn write(&mut self, host: &Host<'_>) -> bool {
        let now = host.now();
        let (sender, writer) = (&mut self.ends[End::Sender as usize], &mut self.writer);
        let stops = now >= host.stop;
        writer.produce(now.since(host.start));
        let available = if stops { 0 } else { writer.produced - writer.written };
        let written = if available > 0 { sender.write(now, available) } else { 0 };
        writer.written += written;
        if !writer.has_finished && (stops || writer.size == Some(writer.written)) {
            writer.has_finished = true;
            sender.finish(now);
        }
        written > 0
    }

    fn read(&mut self, host: &Host<'_>) {
        self.read += self.ends[End::Receiver as usize].read(host.now());
        if self.completed.is_none() && self.writer.size.is_some_and(|size| self.read >= size) {
            self.completed = Some(host.now());
        }
    }

    /// Sends the datagrams of an end. Returns whether there were any.
    fn transmit(&mut self, end: End, host: &mut Host<'_>) -> bool {
        let mut has_sent = false;
        loop {
            self.buffer.clear();
            let Some(transmit) = self.ends[end as usize].poll_transmit(host.now(), &mut self.buffer) else {
                return has_sent;
            };
            has_sent = true;
            let path = &mut self.paths[usize::from(transmit.path)];
            let is_data = end == End::Sender;
            path.sent += u64::from(is_data);
            let number = self.numbers[end as usize];
            self.numbers[end as usize] += 1;
            let body = Body::Datagram { id: host.network.datagrams.insert(&self.buffer), number, is_data };
            let (route, bytes) = (Route::Path(path.index as u16), self.buffer.len() as u32 + self.header_bytes);
            host.send(end, body, transmit.path, route, bytes, transmit.ecn);
        }
    }
}

impl Protocol for HostedFlow {
    fn wake(&mut self, end: End, host: &mut Host<'_>) {
        let endpoint = &mut self.ends[end as usize];
        if endpoint.deadline() <= host.now() {
            endpoint.on_timeout(host.now());
        }
        self.serve(end, host);
    }

    fn receive(&mut self, end: End, arrival: Arrival, host: &mut Host<'_>) {
        let &Body::Datagram { id, is_data, .. } = host.body(arrival) else { return };
        let bytes = host.network.datagrams.remove(id);
        let endpoint = &mut self.ends[end as usize];
        endpoint.receive(host.now(), Datagram { path: arrival.path, bytes: &bytes, ecn: arrival.ecn });
        let path = &mut self.paths[usize::from(arrival.path)];
        if is_data {
            host.network.work.delivered_data_packets += 1;
            path.arrived_bytes += u64::from(arrival.bytes);
        } else if let Some(srtt) = endpoint.path(arrival.path).srtt {
            path.rtt.add(srtt);
            self.rtt.add(srtt);
        }
        self.serve(end, host);
    }

    fn counters(&self) -> Counters {
        let paths = self.paths();
        let cwnds: Vec<f64> = paths.iter().filter_map(|path| path.sender.cwnd).collect();
        Counters {
            delivered_bytes: self.read,
            arrived_bytes: paths.iter().map(|path| path.arrived_bytes).sum(),
            sender: SenderCounters {
                sent: paths.iter().map(|path| path.sender.sent).sum(),
                cwnd: (!cwnds.is_empty()).then(|| cwnds.iter().sum()),
                srtt: paths.iter().filter_map(|path| path.sender.srtt).min(),
                ..SenderCounters::default()
            },
            is_greedy: self.writer.rate.is_none(),
            completed: self.completed,
            peak: None,
        }
    }

    fn paths(&self) -> Vec<PathCounters<'_>> {
        let status = (0..).map(|path| self.ends[End::Sender as usize].path(path));
        let counters = self.paths.iter().zip(status).map(|(path, status)| PathCounters {
            path: path.index,
            arrived_bytes: path.arrived_bytes,
            sender: SenderCounters {
                sent: path.sent,
                cwnd: status.cwnd.map(|cwnd| cwnd as f64 / f64::from(self.max_datagram)),
                srtt: status.srtt,
                ..SenderCounters::default()
            },
            rtt: &path.rtt,
            srtt: None,
        });
        counters.collect()
    }

    fn record(&self, _start: Instant, _end: Instant, flow: Flow) -> Flow {
        let error = self.ends.iter().find_map(|end| end.error());
        Flow {
            protocol: record::Protocol::Hosted,
            congestion_control: self.congestion.clone(),
            rtt_ms: self.rtt.summary(),
            stack: Some(record::Stack { stack: self.stack.clone(), stack_error: error.unwrap_or_default() }),
            ..flow
        }
    }

    fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        vec![("rtt_ms", &self.rtt)]
    }

    fn leave_out_distributions(&mut self) {
        self.rtt.turn_off();
        self.paths.iter_mut().for_each(|path| path.rtt.turn_off());
    }
}
