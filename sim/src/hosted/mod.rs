//! Connections of hosted stacks: their datagrams are bytes, which cross the network as any packet does.

mod application;

use crate::error::Error;
use crate::packet::{Body, Route};
use crate::protocol::{Arrival, Counters, End, Host, PathCounters, Protocol, SenderCounters};
use application::Application;
use record::{Distribution, Flow, Requests};
use scenario::model::{Experiment, Flow as FlowModel, Hosted};
use stack::{Datagram, Endpoint, Setup};
use units::{Instant, RngStream};

/// A UDP header, bytes.
const UDP_HEADER: u32 = 8;

/// Both ends of a connection of a hosted stack.
#[derive(Debug)]
pub(crate) struct HostedFlow {
    /// The sender of the data, and their receiver.
    ends: [Box<dyn Endpoint>; 2],
    stack: String,
    congestion: String,
    paths: Vec<HostedPath>,
    /// IP and UDP headers, bytes.
    header_bytes: u32,
    /// The largest payload of UDP, bytes.
    max_datagram: u32,
    application: Application,
    has_started: bool,
    has_closed: bool,
    /// Datagrams sent by each end.
    numbers: [u64; 2],
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
        let application = Application::new(model, &flow.name, max_datagram.into(), seed);
        let mut ends = entry.endpoints(&setup).map_err(error)?;
        // The first endpoint connects.
        if application.opener() == End::Receiver {
            ends.reverse();
        }
        let path = |index| HostedPath { index, sent: 0, arrived_bytes: 0, rtt: Distribution::default() };
        Ok(Self {
            ends,
            stack: name.clone(),
            congestion: model
                .congestion
                .as_ref()
                .map_or_else(|| format!("{}default", stack::OWN), |it| it.name.clone()),
            paths: model.subflows.iter().map(|subflow| path(subflow.path)).collect(),
            header_bytes,
            max_datagram,
            application,
            has_started: false,
            has_closed: false,
            numbers: [0; 2],
            buffer: Vec::new(),
            rtt: Distribution::default(),
        })
    }

    /// Opens the connection. Returns the end that does.
    fn start(&mut self, now: Instant) -> End {
        let opener = self.application.opener();
        self.ends[opener as usize].connect(now);
        opener
    }

    /// Lets the application read and write, sends what the end has to send, and sets its timer.
    fn serve(&mut self, end: End, host: &mut Host<'_>) {
        while let Some(read) = self.ends[end as usize].read(host.now()) {
            self.application.on_read(end, read, host.now());
        }
        while self.application.write(end, &mut *self.ends[end as usize], host) && self.transmit(end, host) {}
        if end == End::Receiver && !self.has_closed && self.application.is_over(host) {
            self.has_closed = true;
            self.ends[end as usize].close(host.now());
        }
        self.transmit(end, host);
        let deadline = self.ends[end as usize].deadline().min(self.application.deadline(end, host));
        if deadline < Instant::NEVER {
            host.wake_at(end, deadline);
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
            let body = Body::Datagram { id: host.network.world.store.datagrams.insert(&self.buffer), number, is_data };
            let (route, bytes) = (Route::Path(path.index as u16), self.buffer.len() as u32 + self.header_bytes);
            host.send(end, body, transmit.path, route, bytes, transmit.ecn);
        }
    }
}

impl Protocol for HostedFlow {
    fn wake(&mut self, end: End, host: &mut Host<'_>) {
        let has_started = std::mem::replace(&mut self.has_started, true);
        let end = if has_started { end } else { self.start(host.now()) };
        let endpoint = &mut self.ends[end as usize];
        if endpoint.deadline() <= host.now() {
            endpoint.on_timeout(host.now());
        }
        self.serve(end, host);
    }

    fn receive(&mut self, end: End, arrival: Arrival, host: &mut Host<'_>) {
        let &Body::Datagram { id, is_data, .. } = host.body(arrival) else { return };
        let bytes = host.network.world.store.datagrams.remove(id);
        let endpoint = &mut self.ends[end as usize];
        endpoint.receive(host.now(), Datagram { path: arrival.path, bytes: &bytes, ecn: arrival.ecn });
        let path = &mut self.paths[usize::from(arrival.path)];
        if is_data {
            host.network.delivered_data_packets += 1;
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
            delivered_bytes: self.application.delivered(),
            arrived_bytes: paths.iter().map(|path| path.arrived_bytes).sum(),
            sender: SenderCounters {
                sent: paths.iter().map(|path| path.sender.sent).sum(),
                cwnd: (!cwnds.is_empty()).then(|| cwnds.iter().sum()),
                srtt: paths.iter().filter_map(|path| path.sender.srtt).min(),
                ..SenderCounters::default()
            },
            is_greedy: self.application.is_greedy(),
            completed: self.application.completed(),
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
            requests: self
                .application
                .response_times()
                .map(|times| Requests { requests: times.count(), response_time_ms: times.summary() }),
            stack: Some(record::Stack { stack: self.stack.clone(), stack_error: error.unwrap_or_default() }),
            ..flow
        }
    }

    fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        let response_times = self.application.response_times().map(|times| ("response_time_ms", times));
        [("rtt_ms", &self.rtt)].into_iter().chain(response_times).collect()
    }

    fn leave_out_distributions(&mut self) {
        self.rtt.turn_off();
        self.application.leave_out_distributions();
        self.paths.iter_mut().for_each(|path| path.rtt.turn_off());
    }
}
