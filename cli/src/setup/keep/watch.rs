//! The events that wake a keeper: netlink's groups of nftables and of the network, its own socket, and time.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// Interval of checks for changes that cause no event (the resolvers), milliseconds.
const INTERVAL_MS: u16 = 10_000;
/// The first change of a burst is examined at once: until then packets can leave outside an exclusive tunnel. Further
/// changes wait for this time, which doubles each time while the burst lasts.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];
/// `NFNLGRP_NFTABLES` as a bit.
const NFTABLES: u32 = 1 << (7 - 1);
/// `RTNLGRP_` of links, addresses, routes, rules and forwarding settings, of both families, as bits.
const NETWORK: u32 =
    group(1) | group(5) | group(7) | group(8) | group(9) | group(11) | group(19) | group(24) | group(25);

const fn group(number: u32) -> u32 {
    1 << (number - 1)
}

/// The reason why a keeper wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Something changed, or time is up.
    Changed,
    /// Somebody has connected to its socket.
    Asked,
}

/// The sources.
pub(super) struct Watch<'a> {
    listener: &'a UnixListener,
    netlink: Vec<OwnedFd>,
    /// The pause after the previous examination.
    pause: Duration,
}

impl<'a> Watch<'a> {
    pub(super) fn new(listener: &'a UnixListener) -> io::Result<Self> {
        let groups = [(SockProtocol::NetlinkRoute, NETWORK), (SockProtocol::NetlinkNetFilter, NFTABLES)];
        let netlink = groups.into_iter().map(|(protocol, groups)| {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
            Ok::<_, Errno>(socket)
        });
        Ok(Self { listener, netlink: netlink.collect::<Result<_, _>>()?, pause: PAUSES[0] })
    }

    /// Waits for one of the events. Events that arrive during an examination count as the next one.
    pub(super) fn wait(&mut self) -> Wake {
        std::thread::sleep(self.pause);
        let start = Instant::now();
        let wake = self.poll(INTERVAL_MS);
        let [least, most] = PAUSES;
        self.pause = if start.elapsed() < self.pause { most.min(self.pause * 2) } else { least };
        if wake == Wake::Changed {
            self.drain();
        }
        wake
    }

    fn poll(&self, timeout_ms: u16) -> Wake {
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.netlink.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)));
        let _ = poll(&mut fds, PollTimeout::from(timeout_ms));
        let is_asked = fds[0].revents().is_some_and(|events| !events.is_empty());
        if is_asked { Wake::Asked } else { Wake::Changed }
    }

    /// Takes all messages. Their contents do not matter, because the host is examined anyway.
    fn drain(&self) {
        let mut buffer = [0; 8192];
        for socket in &self.netlink {
            // ENOBUFS: more messages than the socket holds, which is a change too.
            while let Ok(_) | Err(Errno::ENOBUFS | Errno::EINTR) =
                recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT)
            {}
        }
    }
}
