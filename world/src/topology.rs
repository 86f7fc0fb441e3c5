//! The topology: pipes, and paths that are chains of them.

use crate::packet::{Direction, PacketDescriptor};
use link::{Pipe, PipeConfig};
use units::RngStream;

/// Pipes and paths, each by its number from zero.
#[derive(Debug, Default)]
pub struct Topology {
    pub(crate) pipes: Vec<Pipe<PacketDescriptor>>,
    /// Per path and direction: the pipes in the order of travel.
    hops: Vec<[Vec<Hop>; 2]>,
    /// By pipe: whether its queue is in the sending host.
    local: Vec<bool>,
}

/// A pipe of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) pipe: u32,
    /// Whether the pipe forwards (see [`Chains`](crate::chains::Chains)).
    pub(crate) forwards: bool,
    /// Whether its queue is in the sending host.
    pub(crate) is_local: bool,
}

impl Topology {
    /// Adds a pipe, which draws from this random stream. Returns its number.
    pub fn add_pipe(&mut self, config: &PipeConfig, rng: RngStream) -> u32 {
        self.pipes.push(Pipe::new(config, rng));
        self.local.push(config.local);
        self.pipes.len() as u32 - 1
    }

    /// Adds a path of at least one pipe in each direction: first forward, then reverse, in the order of travel. Returns its
    /// number. Paths may share pipes.
    pub fn add_path(&mut self, hops: [Vec<u32>; 2]) -> u16 {
        let hop = |pipe: u32| Hop { pipe, forwards: false, is_local: self.local[pipe as usize] };
        self.hops.push(hops.map(|pipes| pipes.into_iter().map(hop).collect()));
        self.hops.len() as u16 - 1
    }

    /// Number of paths.
    #[must_use]
    pub fn paths(&self) -> usize {
        self.hops.len()
    }

    /// All pipes, by number.
    #[must_use]
    pub fn pipes(&self) -> &[Pipe<PacketDescriptor>] {
        &self.pipes
    }

    /// The pipes of a path in one direction.
    #[must_use]
    pub fn pipes_of(&self, path: usize, direction: Direction) -> Vec<u32> {
        self.hops[path][direction as usize].iter().map(|hop| hop.pipe).collect()
    }

    /// Sets which pipes forward.
    pub(crate) fn set_forwards(&mut self, forwards: &[bool]) {
        for hop in self.hops.iter_mut().flatten().flatten() {
            hop.forwards = forwards[hop.pipe as usize];
        }
    }

    /// A path's first pipe.
    #[inline]
    #[must_use]
    pub fn first(&self, path: u16, direction: Direction) -> u32 {
        self.hops[usize::from(path)][direction as usize][0].pipe
    }

    /// The pipe at position `hop` of a path, or `None` at its end.
    #[inline]
    pub(crate) fn hop(&self, path: u16, direction: Direction, hop: u8) -> Option<Hop> {
        self.hops[usize::from(path)][direction as usize].get(usize::from(hop)).copied()
    }

    /// The pipes of a path in one direction, and the state of all pipes.
    #[inline]
    pub(crate) fn hops_and_pipes(
        &mut self,
        path: u16,
        direction: Direction,
    ) -> (&[Hop], &mut [Pipe<PacketDescriptor>]) {
        (&self.hops[usize::from(path)][direction as usize], &mut self.pipes)
    }
}
