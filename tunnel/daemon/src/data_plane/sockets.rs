//! The sockets of all uplinks: opened, closed and replaced as network devices and the configuration change.
//!
//! A socket that is bound to a device is useless once the device is removed, even if a device of the same name follows
//! (an LTE stick that is unplugged and plugged in again). It is closed, and opened again when device and address exist.

use super::channel::LinkEvent;
use super::config::{Error, SocketConfig};
use super::socket::Socket;
use std::collections::BTreeMap;
use tracing::{info, warn};

/// Opens sockets. One whose device or address does not exist yet stays closed, if any other can be opened.
///
/// # Errors
/// The kernel's.
pub(super) fn open(configs: &[SocketConfig]) -> Result<Vec<Socket>, Error> {
    check_shared_ports(configs.iter())?;
    let mut sockets = Vec::new();
    let mut missing = None;
    for config in configs {
        let (socket, error) = open_or_wait(config)?;
        sockets.push(socket);
        missing = missing.or(error);
    }
    match missing {
        Some(error) if !sockets.iter().any(Socket::is_open) => Err(error),
        _ => Ok(sockets),
    }
}

/// Checks that two sockets of one thread do not share a port, which the kernel would otherwise refuse.
fn check_shared_ports<'a>(configs: impl Iterator<Item = &'a SocketConfig>) -> Result<(), Error> {
    let mut addresses = BTreeMap::new();
    for config in configs.filter(|config| config.shares_port) {
        if let Some(earlier) = addresses.insert((&config.interface, config.bind), &config.name) {
            let name = &config.name;
            return Err(Error::config(format!("paths {earlier} and {name} have the same address: {}", config.bind)));
        }
    }
    Ok(())
}

/// Opens one socket. If its device or its address does not exist, the socket is closed and the error is returned, too.
fn open_or_wait(config: &SocketConfig) -> Result<(Socket, Option<Error>), Error> {
    match Socket::open(config) {
        Ok(socket) => Ok((socket, None)),
        Err(error) if error.is_missing_device() => {
            warn!("{error}; tried again when the device or the address appears");
            Ok((Socket::closed(Some(config.clone())), Some(error)))
        }
        Err(error) => Err(error),
    }
}

/// Replaces the sockets by those of `configs`, all or none, and returns the indices of the replaced ones. A socket
/// whose configuration is the same stays open.
///
/// # Errors
/// The kernel's; then no socket has changed.
pub(super) fn replace(sockets: &mut Vec<Socket>, configs: &[Option<SocketConfig>]) -> Result<Vec<usize>, Error> {
    check_shared_ports(configs.iter().flatten())?;
    sockets.resize_with(configs.len().max(sockets.len()), || Socket::closed(None));
    let configs = |index: usize| configs.get(index).and_then(Option::as_ref);
    let replaced: Vec<usize> = (0..sockets.len()).filter(|index| sockets[*index].config() != configs(*index)).collect();
    // A new socket may need the port of an old one.
    replaced.iter().for_each(|index| sockets[*index].close());
    let open = |index: &usize| match configs(*index) {
        Some(config) => open_or_wait(config).map(|(socket, _)| socket),
        None => Ok(Socket::closed(None)),
    };
    let opened_sockets = replaced.iter().map(open).collect::<Result<Vec<_>, _>>();
    let opened_sockets =
        opened_sockets.inspect_err(|_| replaced.iter().for_each(|index| reopen(&mut sockets[*index])))?;
    for (index, socket) in replaced.iter().zip(opened_sockets) {
        sockets[*index] = socket;
    }
    Ok(replaced)
}

/// Closes the sockets that [`replace`] would replace.
pub(super) fn close_replaced(sockets: &mut [Socket], configs: &[Option<SocketConfig>]) {
    for (index, socket) in sockets.iter_mut().enumerate() {
        if socket.config() != configs.get(index).and_then(Option::as_ref) {
            socket.close();
        }
    }
}

/// Opens the sockets that are closed and have a configuration.
pub(super) fn reopen_all(sockets: &mut [Socket]) {
    sockets.iter_mut().filter(|socket| !socket.is_open() && socket.config().is_some()).for_each(reopen);
}

fn reopen(socket: &mut Socket) {
    if let Err(error) = socket.reopen() {
        warn!("{error}");
    }
}

/// The names of the sockets that wait for their device or their address.
pub(super) fn waiting_names(sockets: &[Socket]) -> Vec<String> {
    let waiting = sockets.iter().filter(|socket| !socket.is_open()).filter_map(Socket::config);
    waiting.map(|config| config.name.clone()).collect()
}

/// Closes and opens sockets after a change of `device`. Returns (index, whether its link is up) of the affected ones.
pub(super) fn on_link_event(sockets: &mut [Socket], device: &str, event: LinkEvent) -> Vec<(usize, bool)> {
    let mut affected = Vec::new();
    for (index, socket) in sockets.iter_mut().enumerate() {
        let Some(config) = socket.config() else { continue };
        let (is_bound, name) = (config.interface.as_deref() == Some(device), config.name.clone());
        match event {
            LinkEvent::Removed if is_bound => {
                info!(path = name, "device removed");
                socket.close();
                affected.push((index, false));
            }
            LinkEvent::Down if is_bound => {
                socket.report.up = false;
                affected.push((index, false));
            }
            LinkEvent::Up | LinkEvent::AddressAdded if !socket.is_open() || is_bound && socket.is_stale() => {
                // If the device or the address is still missing, another event follows.
                let result = socket.reopen().map(|()| info!(path = name, "device present"));
                affected.extend(result.is_ok().then_some((index, true)));
            }
            LinkEvent::Up if is_bound => {
                socket.report.up = true;
                affected.push((index, true));
            }
            _ => {}
        }
    }
    affected
}
