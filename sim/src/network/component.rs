//! The components that have a timer, and their ids.

use crate::packet::Direction::{self, Forward, Reverse};

/// A component with a pending instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    /// The next change of a link.
    Changes,
    /// The next sample of the time series.
    Sampler,
    /// The end of the fairness meter's window.
    Meter,
    /// A tunnel's sending end in this direction: MPT's thread, blocked by a full socket; the timers of Ropewalk's
    /// endpoint.
    Ingress(Direction),
    /// The reordering of an MPT tunnel's receiving end.
    Egress(Direction),
    /// The next background packet of an MPT tunnel in this direction.
    Stray(Direction),
    /// A flow's sender.
    Source(u16),
    /// A flow's receiver.
    Sink(u16),
}

use Component::{Changes, Egress, Ingress, Meter, Sampler, Sink, Source, Stray};

/// The components that every experiment has, in the order of their ids.
const FIXED: [Component; 9] = [
    Changes,
    Sampler,
    Meter,
    Ingress(Forward),
    Ingress(Reverse),
    Egress(Forward),
    Egress(Reverse),
    Stray(Forward),
    Stray(Reverse),
];

/// Ids of all components: the fixed ones, a source and a sink for each flow.
#[derive(Debug)]
pub(crate) struct IdMap {
    components: Vec<Component>,
}

impl IdMap {
    pub(crate) fn new(flows: u16) -> Self {
        let ends = (0..flows).flat_map(|flow| [Source(flow), Sink(flow)]);
        Self { components: FIXED.into_iter().chain(ends).collect() }
    }

    pub(crate) fn len(&self) -> u32 {
        self.components.len() as u32
    }

    /// The component with an id.
    #[inline]
    pub(crate) fn component(&self, id: u32) -> Component {
        self.components[id as usize]
    }

    /// The id of a component.
    #[inline]
    pub(crate) fn id(&self, component: Component) -> u32 {
        let first_flow = FIXED.len() as u32;
        match component {
            Changes => 0,
            Sampler => 1,
            Meter => 2,
            Ingress(direction) => 3 + direction as u32,
            Egress(direction) => 5 + direction as u32,
            Stray(direction) => 7 + direction as u32,
            Source(flow) => first_flow + 2 * u32::from(flow),
            Sink(flow) => first_flow + 2 * u32::from(flow) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_found_by_its_id() {
        let ids = IdMap::new(3);
        assert_eq!(ids.len(), FIXED.len() as u32 + 2 * 3);
        assert!((0..ids.len()).all(|id| ids.id(ids.component(id)) == id));
    }
}
