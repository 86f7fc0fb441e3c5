//! The topology: pipes, and paths that are chains of them.

use crate::packet::{Direction, PacketDescriptor};
use link::{Pipe, PipeConfig};
use units::RngStream;

/// Pipes and paths, each by its number from zero.
#[derive(Debug, Default)]
pub struct Topology {
    pub(crate) pipes: Vec<Pipe<PacketDescriptor>>,
    /// Per path and direction: the pipes in the order of travel.
    hops: Vec<[Vec<u32>; 2]>,
    local: Vec<bool>,
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
        self.hops.push(hops);
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
    pub fn pipes_of(&self, path: usize, direction: Direction) -> &[u32] {
        &self.hops[path][direction as usize]
    }

    /// A path's first pipe.
    #[inline]
    #[must_use]
    pub fn first(&self, path: u16, direction: Direction) -> u32 {
        self.pipes_of(usize::from(path), direction)[0]
    }

    /// The pipe at position `hop` of a path, or `None` at its end.
    #[inline]
    pub(crate) fn hop(&self, path: u16, direction: Direction, hop: u8) -> Option<u32> {
        self.hops[usize::from(path)][direction as usize].get(usize::from(hop)).copied()
    }

    /// The pipes of a path in one direction, and the state of all pipes.
    #[inline]
    pub(crate) fn hops_and_pipes(
        &mut self,
        path: u16,
        direction: Direction,
    ) -> (&[u32], &mut [Pipe<PacketDescriptor>]) {
        (&self.hops[usize::from(path)][direction as usize], &mut self.pipes)
    }

    /// Whether the pipe's queue is in the sending host.
    #[inline]
    pub(crate) fn is_local(&self, pipe: u32) -> bool {
        self.local[pipe as usize]
    }
}
