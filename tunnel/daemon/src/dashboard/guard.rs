//! Bounds on who is connected: a number of clients, and a time in which a client must read or write something.

use axum::serve::Listener;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// The most clients of a dashboard at one time; others wait to be accepted.
pub const MAX_CLIENTS: usize = 16;
/// The time after which a client that neither sent nor took a byte is disconnected. A stream has something each second.
const MAX_SILENCE: Duration = Duration::from_secs(20);

/// A listener whose connections are bounded.
pub struct GuardedListener<L> {
    inner: L,
    places: Arc<Semaphore>,
    max_silence: Duration,
}

impl<L> GuardedListener<L> {
    /// Bounds the connections of `inner`.
    pub fn new(inner: L) -> Self {
        Self { inner, places: Arc::new(Semaphore::new(MAX_CLIENTS)), max_silence: MAX_SILENCE }
    }
}

impl<L: Listener> Listener for GuardedListener<L> {
    type Io = Guarded<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (inner, address) = self.inner.accept().await;
        let silence = Box::pin(sleep(self.max_silence));
        (Guarded { inner, silence, max_silence: self.max_silence, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

/// A connection that fails when its client is silent for too long.
pub struct Guarded<S> {
    inner: S,
    silence: Pin<Box<Sleep>>,
    max_silence: Duration,
    _place: Option<OwnedSemaphorePermit>,
}

impl<S: Unpin> Guarded<S> {
    /// Restarts the time if something was done, and fails if it is over.
    fn watch<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.silence.as_mut().reset(Instant::now() + self.max_silence);
            return done;
        }
        self.silence.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.watch(cx, done)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watch(cx, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
