//! Who can be due, and their numbers on the agenda.

use crate::packet::Direction::{self, Forward, Reverse};

/// Somebody with a pending instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    /// The next change of a link.
    Changes,
    /// The next sample of the time series.
    Sampler,
    /// The end of the meter's window.
    Meter,
    /// The tunnel's thread, blocked by a full socket.
    Ingress(Direction),
    /// The resequencer.
    Egress(Direction),
    /// One direction of a link.
    Pipe(u32),
    /// A flow's sender.
    Source(u16),
    /// A flow's receiver.
    Sink(u16),
}

use Component::{Changes, Egress, Ingress, Meter, Pipe, Sampler, Sink, Source};

/// The components that every experiment has; number on the agenda = position.
const FIXED: [Component; 7] =
    [Changes, Sampler, Meter, Ingress(Forward), Ingress(Reverse), Egress(Forward), Egress(Reverse)];

/// All components of an experiment: the fixed ones, the pipes, a source and a sink for each flow.
#[derive(Debug)]
pub(super) struct Roster {
    components: Vec<Component>,
    pipes: u32,
}

impl Roster {
    pub(super) fn new(pipes: u32, flows: u16) -> Self {
        let ends = (0..flows).flat_map(|flow| [Source(flow), Sink(flow)]);
        Self { components: FIXED.into_iter().chain((0..pipes).map(Pipe)).chain(ends).collect(), pipes }
    }

    pub(super) fn len(&self) -> u32 {
        self.components.len() as u32
    }

    /// Whose number this is.
    #[inline]
    pub(super) fn component(&self, id: u32) -> Component {
        self.components[id as usize]
    }

    /// The number of a component.
    #[inline]
    pub(super) fn id(&self, component: Component) -> u32 {
        let first_pipe = FIXED.len() as u32;
        let first_flow = first_pipe + self.pipes;
        match component {
            Changes => 0,
            Sampler => 1,
            Meter => 2,
            Ingress(direction) => 3 + direction as u32,
            Egress(direction) => 5 + direction as u32,
            Pipe(pipe) => first_pipe + pipe,
            Source(flow) => first_flow + 2 * u32::from(flow),
            Sink(flow) => first_flow + 2 * u32::from(flow) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_found_by_its_number() {
        let roster = Roster::new(5, 3);
        assert_eq!(roster.len(), FIXED.len() as u32 + 5 + 2 * 3);
        assert!((0..roster.len()).all(|id| roster.id(roster.component(id)) == id));
    }
}
