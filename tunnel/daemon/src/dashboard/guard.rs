//! Limits on connections. A connection without an answer for [`MAX_UNANSWERED`] is closed: the client sends its request
//! byte by byte, is idle, or reads nothing of an answer. There are [`MAX_CLIENTS`] places. When all are taken, a new
//! connection replaces one that was never allowed anything, refused ones first. Otherwise it replaces the one that has
//! been idle for longest, or one of the address that has most. If that address has no more than the new client's would
//! have, the new connection is closed.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::cmp::Reverse;
use std::future::Future as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};
use tracing::warn;

/// Maximum number of clients of a dashboard at one time.
pub const MAX_CLIENTS: usize = 16;
/// The longest time in which no part of an answer could be written. A stream writes each second.
const MAX_UNANSWERED: Duration = Duration::from_secs(10);
/// A connection that was last answered this long ago is idle.
const IDLE: Duration = Duration::from_secs(2);

/// The interval at which a listener that cannot accept is reported, and the time before it tries again.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// The unit by which shares of places are counted; `None` for clients of this machine, which share all of them.
type Group = Option<IpAddr>;

/// The address of a client.
pub trait ClientAddress {
    /// The address by which its connections are counted: for IPv6 the first 64 bits, which are one network.
    fn group(&self) -> Group;
}

impl ClientAddress for std::net::SocketAddr {
    fn group(&self) -> Group {
        match self.ip().to_canonical() {
            address if address.is_loopback() => None,
            IpAddr::V6(address) => Some(IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes())),
            address => Some(address),
        }
    }
}

impl ClientAddress for tokio::net::unix::SocketAddr {
    fn group(&self) -> Group {
        None
    }
}

/// A listener that returns the error if it cannot accept.
pub trait Accept: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A client's address.
    type Addr: ClientAddress + std::fmt::Debug + Send;

    /// The next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, Self::Addr)>> + Send;

    /// The address that it listens on.
    ///
    /// # Errors
    /// The operating system's.
    fn local_addr(&self) -> io::Result<Self::Addr>;
}

impl Accept for TcpListener {
    type Io = TcpStream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> io::Result<(Self::Io, Self::Addr)> {
        Self::accept(self).await
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Self::local_addr(self)
    }
}

impl Accept for UnixListener {
    type Io = UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> io::Result<(Self::Io, Self::Addr)> {
        Self::accept(self).await
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Self::local_addr(self)
    }
}

/// The answers that a connection has got, in the order in which connections give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Refused,
    New,
    Allowed,
}

/// A connection in the list of all.
#[derive(Debug)]
struct Place {
    number: u64,
    group: Group,
    answered: Instant,
    standing: Standing,
    /// Dropped to close the connection.
    _open: oneshot::Sender<()>,
}

/// The connections.
#[derive(Debug, Default)]
struct Places {
    latest: u64,
    taken: Vec<Place>,
}

impl Places {
    /// Takes a place, if necessary from another connection. `None` if no other connection has to give way.
    fn take(&mut self, group: Group, now: Instant) -> Option<(u64, oneshot::Receiver<()>)> {
        if self.taken.len() >= MAX_CLIENTS {
            let victim = self.victim(group, now)?;
            self.taken.swap_remove(victim);
        }
        let (open, closed) = oneshot::channel();
        self.latest += 1;
        self.taken.push(Place { number: self.latest, group, answered: now, standing: Standing::New, _open: open });
        Some((self.latest, closed))
    }

    /// The connection that gives way to one of `group`: the oldest that was refused, or not yet answered; then the one that
    /// has been idle for longest, or one of a group that has more places than `group` would have.
    fn victim(&self, group: Group, now: Instant) -> Option<usize> {
        let count = |group: Group| self.taken.iter().filter(|place| place.group == group).count();
        let places = || self.taken.iter().enumerate();
        let without_access = places().filter(|(_, place)| place.standing < Standing::Allowed);
        let without_access = without_access.min_by_key(|(_, place)| (place.standing, place.answered, place.number));
        let idle = places().filter(|(_, place)| now.duration_since(place.answered) >= IDLE);
        let own = count(group);
        let more = places().filter(|(_, place)| count(place.group) > own + 1);
        let victim = without_access.or_else(|| idle.min_by_key(|(_, place)| place.answered));
        let victim = victim.or_else(|| more.max_by_key(|(_, place)| (count(place.group), Reverse(place.answered))));
        victim.map(|(index, _)| index)
    }
}

/// A listener with a limited number of connections.
pub struct GuardedListener<L> {
    inner: L,
    /// When the failure to accept was last reported.
    reported: Option<Instant>,
    places: Arc<Mutex<Places>>,
    max_unanswered: Duration,
}

impl<L> GuardedListener<L> {
    /// Limits the connections of `inner`.
    pub fn new(inner: L) -> Self {
        Self { inner, reported: None, places: Arc::default(), max_unanswered: MAX_UNANSWERED }
    }

    /// Changes the time after which an unanswered connection is closed.
    #[must_use]
    pub fn with_max_unanswered(self, max_unanswered: Duration) -> Self {
        Self { max_unanswered, ..self }
    }
}

impl<L: Accept> GuardedListener<L> {
    /// Reports once per minute why no connection can be accepted: no descriptor is left, for example.
    async fn report(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return; // that client's
        }
        if self.reported.is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL) {
            warn!("connections to {:?} wait, none can be accepted: {error}", self.inner.local_addr());
            self.reported = Some(Instant::now());
        }
        sleep(ACCEPT_RETRY).await;
    }
}

/// The list; poisoned only if this code panicked.
fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<L: Accept> Listener for GuardedListener<L> {
    type Io = Guarded<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (inner, address) = match self.inner.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.report(&error).await;
                    continue;
                }
            };
            let place = lock(&self.places).take(address.group(), Instant::now());
            // A connection without a place is closed: others may wait behind it.
            if let Some((number, closed)) = place {
                let (places, max_unanswered) = (Arc::clone(&self.places), self.max_unanswered);
                let unanswered = Box::pin(sleep(max_unanswered));
                return (Guarded { inner, unanswered, max_unanswered, closed, number, places }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

/// The place of a connection, for the code that decides on its requests.
#[derive(Clone, Debug)]
pub(super) struct ConnectionPlace {
    number: u64,
    places: Arc<Mutex<Places>>,
}

impl ConnectionPlace {
    /// Notes whether a request was allowed.
    pub(super) fn note(&self, is_allowed: bool) {
        if let Some(place) = lock(&self.places).taken.iter_mut().find(|place| place.number == self.number) {
            match (is_allowed, place.standing) {
                (true, _) => place.standing = Standing::Allowed,
                (false, Standing::New) => place.standing = Standing::Refused,
                (false, _) => {}
            }
        }
    }
}

impl<L: Accept> Connected<IncomingStream<'_, GuardedListener<L>>> for ConnectionPlace {
    fn connect_info(stream: IncomingStream<'_, GuardedListener<L>>) -> Self {
        let connection = stream.io();
        Self { number: connection.number, places: Arc::clone(&connection.places) }
    }
}

/// A connection that fails when it was not answered for too long, or when it has to give way.
pub struct Guarded<S> {
    inner: S,
    unanswered: Pin<Box<Sleep>>,
    max_unanswered: Duration,
    closed: oneshot::Receiver<()>,
    number: u64,
    places: Arc<Mutex<Places>>,
}

impl<S> Guarded<S> {
    /// Fails if the time is over or the place is taken; and wakes the task when that happens.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.unanswered.as_mut().poll(context).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if Pin::new(&mut self.closed).poll(context).is_ready() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn was_answered(&mut self) {
        let now = Instant::now();
        self.unanswered.as_mut().reset(now + self.max_unanswered);
        if let Some(place) = lock(&self.places).taken.iter_mut().find(|place| place.number == self.number) {
            place.answered = now;
        }
    }
}

impl<S> Drop for Guarded<S> {
    fn drop(&mut self) {
        lock(&self.places).taken.retain(|place| place.number != self.number);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        let done = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if matches!(done, Poll::Ready(Ok(_))) {
            self.was_answered();
        }
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::{Access, serve};
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::sync::mpsc;
    use tokio::sync::oneshot::error::TryRecvError;

    /// A listener whose connections are made by the test, each from an address.
    struct Connections(mpsc::UnboundedReceiver<(DuplexStream, std::net::SocketAddr)>);

    impl Accept for Connections {
        type Io = DuplexStream;
        type Addr = std::net::SocketAddr;

        async fn accept(&mut self) -> io::Result<(Self::Io, Self::Addr)> {
            match self.0.recv().await {
                Some(connection) => Ok(connection),
                None => std::future::pending().await,
            }
        }

        fn local_addr(&self) -> io::Result<Self::Addr> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    struct Server(mpsc::UnboundedSender<(DuplexStream, std::net::SocketAddr)>);

    impl Server {
        fn start(max_unanswered: Duration) -> Self {
            let (sender, connections) = mpsc::unbounded_channel();
            let routes = Router::new().route("/", get(|| async { "page" }));
            let access = Access::Loopback("127.0.0.1:1".parse().unwrap());
            let listener = GuardedListener::new(Connections(connections)).with_max_unanswered(max_unanswered);
            tokio::spawn(serve(listener, access, routes));
            Self(sender)
        }

        fn connect(&self, address: &str) -> DuplexStream {
            let (client, server) = duplex(1 << 16);
            self.0.send((server, format!("{address}:1").parse().unwrap())).unwrap();
            client
        }

        /// The answer to a request of a new connection.
        async fn answer(&self, address: &str) -> String {
            let mut client = self.connect(address);
            client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn a_request_that_comes_byte_by_byte_is_cut_off() {
        runtime().block_on(async {
            let mut client = Server::start(Duration::from_millis(50)).connect("192.0.2.1");
            let endless = b"GET / HTTP/1.1\r\nX: ".iter().chain(std::iter::repeat(&b'x'));
            for byte in endless {
                if client.write_all(&[*byte]).await.is_err() {
                    return;
                }
                sleep(Duration::from_millis(1)).await;
            }
        });
    }

    #[test]
    fn unfinished_requests_in_all_places_do_not_keep_another_address_out() {
        runtime().block_on(async {
            let server = Server::start(Duration::from_secs(3600));
            let mut slow: Vec<_> = (0..2 * MAX_CLIENTS).map(|_| server.connect("192.0.2.1")).collect();
            for client in &mut slow {
                // Those beyond the places are closed.
                let _ = client.write_all(b"GET / HTTP/1.1\r\n").await;
            }
            assert!(server.answer("192.0.2.2").await.ends_with("page"));
        });
    }

    #[test]
    fn a_place_is_taken_from_who_has_most_or_from_the_idle_and_never_from_equals() {
        runtime().block_on(async {
            let now = Instant::now();
            let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
            let mut places = Places::default();
            let take = |places: &mut Places, group: Group, now: Instant| {
                let taken = places.take(group, now);
                places.taken.iter_mut().for_each(|place| place.standing = Standing::Allowed);
                taken
            };
            let mut closed: Vec<_> = (0..MAX_CLIENTS).map(|_| take(&mut places, address(1), now).unwrap().1).collect();
            assert!(places.take(address(1), now).is_none(), "its own streams are as good as the new one");
            let half: Vec<_> = (0..MAX_CLIENTS / 2).map(|_| take(&mut places, address(2), now).unwrap()).collect();
            assert!(places.take(address(2), now).is_none(), "half of the places is its share of two");
            let is_closed = |closed: &mut oneshot::Receiver<()>| closed.try_recv() == Err(TryRecvError::Closed);
            assert_eq!(closed.iter_mut().map(is_closed).filter(|closed| *closed).count(), MAX_CLIENTS / 2);
            assert_eq!((half.len(), places.taken.len()), (MAX_CLIENTS / 2, MAX_CLIENTS));
            assert!(take(&mut places, address(3), now).is_some());
            assert!(take(&mut places, address(1), now + IDLE).is_some(), "an idle one gives way to anybody");
        });
    }

    #[test]
    fn refused_connections_in_all_places_do_not_keep_this_machine_out() {
        runtime().block_on(async {
            let server = Server::start(Duration::from_secs(3600));
            // From this machine, and from more addresses than there are places.
            for from in [|_: usize| "127.0.0.1".to_owned(), |number: usize| format!("192.0.2.{number}")] {
                let mut refused = Vec::new();
                for number in 0..2 * MAX_CLIENTS {
                    let mut client = server.connect(&from(number));
                    client.write_all(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").await.unwrap();
                    let mut head = [0; 12];
                    client.read_exact(&mut head).await.unwrap();
                    assert_eq!(&head, b"HTTP/1.1 403");
                    refused.push(client);
                }
                assert!(server.answer("127.0.0.1").await.ends_with("page"));
            }
        });
    }

    #[test]
    fn a_network_of_ipv6_is_one_client_and_this_machine_has_no_share() {
        let group = |address: &str| address.parse::<std::net::SocketAddr>().unwrap().group();
        assert_eq!(group("[2001:db8::1]:1"), group("[2001:db8::ffff:2]:2"));
        assert_ne!(group("[2001:db8::1]:1"), group("[2001:db8:0:1::1]:1"));
        assert_eq!(group("[::ffff:192.0.2.1]:1"), group("192.0.2.1:2"));
        assert_eq!((group("127.0.0.1:1"), group("[::1]:1")), (None, None));
    }
}
