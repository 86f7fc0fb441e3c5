//! The sockets of all uplinks, which come and go with their devices, and with the configuration.
//!
//! A socket that is bound to a device dies with it, also if a device of the same name is made again (an LTE stick that is
//! pulled and put back): it is closed then, and opened anew when the device and its address are there.

use super::channel::Link;
use super::setup::{Error, SocketSetup};
use super::socket::Socket;
use tracing::{info, warn};

/// Opens them. Those whose device or address is not there yet wait for it, as long as there is any other.
///
/// # Errors
/// What the kernel refuses.
pub(super) fn open(setups: &[SocketSetup]) -> Result<Vec<Socket>, Error> {
    let mut sockets = Vec::new();
    let mut absent = None;
    for setup in setups {
        let (socket, why) = open_or_wait(setup)?;
        sockets.push(socket);
        absent = absent.or(why);
    }
    match absent {
        Some(why) if !sockets.iter().any(Socket::is_open) => Err(why),
        _ => Ok(sockets),
    }
}

/// One of them; with the reason if it is closed because its device or its address is not there yet.
fn open_or_wait(setup: &SocketSetup) -> Result<(Socket, Option<Error>), Error> {
    match Socket::open(setup) {
        Ok(socket) => Ok((socket, None)),
        Err(error) if error.is_absence() => {
            warn!("{error}; it is tried again when that appears");
            Ok((Socket::closed(Some(setup.clone())), Some(error)))
        }
        Err(error) => Err(error),
    }
}

/// The sockets become `wanted`, all or none. Those that are the same stay open; the indices of the others.
///
/// # Errors
/// What the kernel refuses; then all are as they were.
pub(super) fn replace(sockets: &mut Vec<Socket>, wanted: &[Option<SocketSetup>]) -> Result<Vec<usize>, Error> {
    sockets.resize_with(wanted.len().max(sockets.len()), || Socket::closed(None));
    let wanted = |at: usize| wanted.get(at).and_then(Option::as_ref);
    let replaced: Vec<usize> = (0..sockets.len()).filter(|at| sockets[*at].setup() != wanted(*at)).collect();
    // A new one may want the port of an old one.
    replaced.iter().for_each(|at| sockets[*at].close());
    let open = |at: &usize| match wanted(*at) {
        Some(setup) => open_or_wait(setup).map(|(socket, _)| socket),
        None => Ok(Socket::closed(None)),
    };
    let opened = replaced.iter().map(open).collect::<Result<Vec<_>, _>>();
    let opened = opened.inspect_err(|_| replaced.iter().for_each(|at| again(&mut sockets[*at])))?;
    for (at, socket) in replaced.iter().zip(opened) {
        sockets[*at] = socket;
    }
    Ok(replaced)
}

fn again(socket: &mut Socket) {
    if let Err(error) = socket.reopen() {
        warn!("{error}");
    }
}

/// The names of those that wait for their device or their address.
pub(super) fn waiting(sockets: &[Socket]) -> Vec<String> {
    let waiting = sockets.iter().filter(|socket| !socket.is_open()).filter_map(Socket::setup);
    waiting.map(|setup| setup.name.clone()).collect()
}

/// What netlink said of a device: closes and opens sockets accordingly. The sockets whose link works now, or does not.
pub(super) fn follow(sockets: &mut [Socket], device: &str, link: Link) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    for (index, socket) in sockets.iter_mut().enumerate() {
        let Some(setup) = socket.setup() else { continue };
        let (is_bound, name) = (setup.interface.as_deref() == Some(device), setup.name.clone());
        match link {
            Link::Gone if is_bound => {
                info!(path = name, "its device is gone");
                socket.close();
                found.push((index, false));
            }
            Link::Down if is_bound => {
                socket.report.up = false;
                found.push((index, false));
            }
            Link::Up | Link::Addressed if !socket.is_open() || is_bound && socket.is_stale() => {
                // If its device or its address is still not there, the next event tells.
                let opened = socket.reopen().map(|()| info!(path = name, "its device is there"));
                found.extend(opened.is_ok().then_some((index, true)));
            }
            Link::Up if is_bound => {
                socket.report.up = true;
                found.push((index, true));
            }
            _ => {}
        }
    }
    found
}
