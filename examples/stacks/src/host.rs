//! One end of a connection in quinn or noq, as an endpoint of the simulator.
//!
//! noq is a fork of quinn: most calls are the same in both. This file is a module of each stack's adapter, which has its crate as
//! `proto`, and what differs.

use super::proto::congestion::{self, ControllerFactory};
use super::proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, IdleTimeout, ServerConfig, Side, StreamEvent, StreamId, TransportConfig, VarInt,
    crypto,
};
use super::{Factory, NAME, OWN_CONGESTION, Paths, null};
use crate::clock::Clock;
use crate::options::{Options, Role, SERVER_NAME, connection_id, own_name, path_of, unknown_congestion};
use crate::tls;
use bytes::Bytes;
use link::EcnField;
use stack::{Datagram, PathStatus, Read, Setup, Transmit};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use units::Instant;

/// What the application writes.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// One end of a connection.
struct Host {
    role: Role,
    clock: Clock,
    now: Instant,
    paths: Paths,
    endpoint: Endpoint,
    /// How the client connects.
    to_connect: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Datagrams of the endpoint itself, with their paths.
    responses: VecDeque<(u16, Vec<u8>)>,
    /// Number of streams that the client has opened.
    opened: u64,
    /// Streams of which something may be read.
    readable: VecDeque<StreamId>,
    error: Option<String>,
}

/// Both ends of a connection.
pub(crate) fn endpoints(setup: &Setup<'_>) -> Result<[Box<dyn stack::Endpoint>; 2], String> {
    let options = Options::new(setup);
    let client = Host::new(Role::Client, &options, None, Some(client_config(&options)?));
    let server = Host::new(Role::Server, &options, Some(server_config(&options)?), None);
    Ok([Box::new(client), Box::new(server)])
}

impl Host {
    fn new(role: Role, options: &Options<'_>, server: Option<ServerConfig>, to_connect: Option<ClientConfig>) -> Self {
        Self {
            role,
            clock: Clock::new(),
            now: Instant::ZERO,
            paths: Paths::new(options.paths),
            endpoint: super::endpoint(Arc::new(endpoint_config(role, options)), server.map(Arc::new)),
            to_connect,
            connection: None,
            responses: VecDeque::new(),
            opened: 0,
            readable: VecDeque::new(),
            error: None,
        }
    }

    /// Passes events between connection and endpoint.
    fn drive(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            self.paths.on_event(&event);
            match event {
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(stream) = connection.streams().accept(Dir::Bi) {
                        self.readable.push_back(stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.readable.push_back(id),
                Event::ConnectionLost { reason } => self.error = lost(&reason),
                _ => {}
            }
        }
        if self.role == Role::Client {
            self.paths.open(connection, self.clock.to_std(self.now));
        }
    }
}

/// The reason of a lost connection; `None` if an application has closed it.
fn lost(reason: &ConnectionError) -> Option<String> {
    let is_closed = matches!(reason, ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed);
    (!is_closed).then(|| reason.to_string())
}

fn endpoint_config(role: Role, options: &Options<'_>) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(null::NullHmac));
    let first = options.first_id(role);
    super::set_id_generator(config.rng_seed(Some(options.rng_seed(role))), move || Box::new(null::CountedIds(first)));
    config
}

fn server_config(options: &Options<'_>) -> Result<ServerConfig, String> {
    let crypto: Arc<dyn crypto::ServerConfig> = if options.tls {
        Arc::new(QuicServerConfig::try_from(tls::server()?).map_err(tls::refused)?)
    } else {
        Arc::new(null::NullConfig)
    };
    let mut config = ServerConfig::new(crypto, Arc::new(null::NullTokens));
    config.transport_config(transport_config(options)?);
    Ok(config)
}

fn client_config(options: &Options<'_>) -> Result<ClientConfig, String> {
    let crypto: Arc<dyn crypto::ClientConfig> = if options.tls {
        Arc::new(QuicClientConfig::try_from(tls::client()?).map_err(tls::refused)?)
    } else {
        Arc::new(null::NullConfig)
    };
    let mut config = ClientConfig::new(crypto);
    config.transport_config(transport_config(options)?);
    let id = connection_id(options.seed);
    config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
    Ok(config)
}

fn transport_config(options: &Options<'_>) -> Result<Arc<TransportConfig>, String> {
    let mut config = TransportConfig::default();
    let window = VarInt::from_u32(options.receive_window);
    config.stream_receive_window(window).receive_window(window).send_window(options.send_window);
    config.initial_mtu(options.datagram_bytes).mtu_discovery_config(None).initial_rtt(options.initial_rtt);
    config.max_idle_timeout(options.idle_timeout_ms.map(|ms| IdleTimeout::from(VarInt::from_u32(ms))));
    super::set_paths(&mut config, options.paths);
    if let Some(factory) = congestion_control(options)? {
        config.congestion_controller_factory(factory);
    }
    Ok(Arc::new(config))
}

/// The congestion control; `None` for the stack's default.
fn congestion_control(options: &Options<'_>) -> Result<Option<Arc<dyn ControllerFactory + Send + Sync>>, String> {
    let Some(choice) = options.congestion else { return Ok(None) };
    Ok(Some(match own_name(choice) {
        Some("cubic") => Arc::new(congestion::CubicConfig::default()),
        Some("newreno") => Arc::new(congestion::NewRenoConfig::default()),
        Some(name) if OWN_CONGESTION.contains(&name) => super::bbr(options)?,
        Some(_) => return Err(unknown_congestion(NAME, choice, OWN_CONGESTION)),
        None => {
            let factory = Factory::new(&choice.name, &choice.parameters).map_err(|error| error.to_string())?;
            Arc::new(factory.with_seed(options.seed))
        }
    }))
}

fn to_codepoint(ecn: EcnField) -> Option<EcnCodepoint> {
    match ecn {
        EcnField::NotEct => None,
        EcnField::Ect0 => Some(EcnCodepoint::Ect0),
        EcnField::Ect1 => Some(EcnCodepoint::Ect1),
        EcnField::Ce => Some(EcnCodepoint::Ce),
    }
}

fn from_codepoint(ecn: Option<EcnCodepoint>) -> EcnField {
    match ecn {
        None => EcnField::NotEct,
        Some(EcnCodepoint::Ect0) => EcnField::Ect0,
        Some(EcnCodepoint::Ect1) => EcnField::Ect1,
        Some(EcnCodepoint::Ce) => EcnField::Ce,
    }
}

impl stack::Endpoint for Host {
    fn deadline(&mut self) -> Instant {
        let timeout = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        timeout.map_or(Instant::NEVER, |at| self.clock.to_virtual(at))
    }

    fn on_timeout(&mut self, now: Instant) {
        self.now = now;
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.clock.to_std(now));
        }
        self.drive();
    }

    fn receive(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        let (now, path) = (self.clock.to_std(now), datagram.path);
        let mut buffer = Vec::new();
        let (ecn, bytes) = (to_codepoint(datagram.ecn), datagram.bytes.into());
        match super::handle(&mut self.endpoint, now, self.role, path, ecn, bytes, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => self.error = Some(error.cause.to_string()),
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                buffer.truncate(transmit.size);
                self.responses.push_back((path, buffer));
            }
            None => {}
        }
        self.drive();
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((path, response)) = self.responses.pop_front() {
            buffer.extend_from_slice(&response);
            return Some(Transmit { path, ecn: EcnField::NotEct });
        }
        let (_, connection) = self.connection.as_mut()?;
        let transmit = connection.poll_transmit(self.clock.to_std(now), super::ONE_DATAGRAM, buffer)?;
        Some(Transmit { path: path_of(transmit.destination), ecn: from_codepoint(transmit.ecn) })
    }

    fn connect(&mut self, now: Instant) {
        self.now = now;
        let Some(config) = self.to_connect.take() else { return };
        match self.endpoint.connect(self.clock.to_std(now), config, Role::Server.address(0), SERVER_NAME) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.error = Some(error.to_string()),
        }
    }

    fn write(&mut self, now: Instant, stream: u64, bytes: u64) -> u64 {
        self.now = now;
        let Some((_, connection)) = &mut self.connection else { return 0 };
        // There is none before the handshake is complete, or beyond the peer's limit.
        if self.role == Role::Client && stream == self.opened && connection.streams().open(Dir::Bi).is_some() {
            self.opened += 1;
        }
        let id = StreamId::new(Side::Client, Dir::Bi, stream);
        let mut chunks = [Bytes::from_static(&ZEROS[..bytes.min(ZEROS.len() as u64) as usize])];
        super::write(&mut connection.send_stream(id), &mut chunks)
    }

    fn finish(&mut self, now: Instant, stream: u64) {
        self.now = now;
        if let Some((_, connection)) = &mut self.connection {
            // A connection that is lost has nothing to end.
            _ = connection.send_stream(StreamId::new(Side::Client, Dir::Bi, stream)).finish();
        }
    }

    fn read(&mut self, now: Instant) -> Option<Read> {
        self.now = now;
        let (_, connection) = self.connection.as_mut()?;
        while let Some(id) = self.readable.pop_front() {
            let mut stream = connection.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { continue };
            let mut read = Read { stream: id.index(), bytes: 0, is_finished: false };
            while let Ok(chunk) = chunks.next(usize::MAX) {
                let Some(chunk) = chunk else {
                    read.is_finished = true;
                    break;
                };
                read.bytes += chunk.bytes.len() as u64;
            }
            // Whether flow control has something to send shows when the stack is polled.
            _ = chunks.finalize();
            return Some(read);
        }
        None
    }

    fn close(&mut self, now: Instant) {
        self.now = now;
        if let Some((_, connection)) = &mut self.connection {
            connection.close(self.clock.to_std(now), VarInt::from_u32(0), Bytes::new());
        }
    }

    fn path(&self, path: u16) -> PathStatus {
        self.connection.as_ref().and_then(|(_, connection)| self.paths.status(path, connection)).unwrap_or_default()
    }

    fn error(&self) -> Option<String> {
        self.error.clone()
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(NAME).field("role", &self.role).field("error", &self.error).finish_non_exhaustive()
    }
}
