//! Tunnels: `mpt`: MPT's; `ropewalk`: Ropewalk's own, with `event_loop`: how its daemon reads; `payload` and `in_flight`: what
//! its datagrams carry; `relay`: its relay of TCP connections.

mod event_loop;
pub(crate) mod in_flight;
mod mpt;
mod payload;
pub(crate) mod relay;
mod ropewalk;

use crate::error::Error;
use crate::network::Tunnel;
use scenario::model;

/// The tunnel of an experiment.
///
/// # Errors
/// A scheduler, one of its parameters, or more paths than a tunnel can have.
pub(crate) fn new(tunnel: &model::Tunnel, paths: &[model::Path], seed: u64) -> Result<Box<dyn Tunnel>, Error> {
    Ok(match &tunnel.ropewalk {
        None => Box::new(mpt::Mpt::new(tunnel, seed)?),
        Some(settings) => Box::new(ropewalk::Ropewalk::new(tunnel, settings, paths, seed)?),
    })
}
