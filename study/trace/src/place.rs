//! The places at which packets can be captured.

use scenario::model::Experiment;

/// A place in the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The near end of the paths: the hosts that send in the forward direction.
    #[default]
    Near,
    /// The far end of the paths.
    Far,
    /// A link, by its number in the experiment, in both directions.
    Link {
        /// The number.
        link: usize,
        /// The end of the link.
        end: LinkEnd,
    },
}

/// An end of a link, in the direction in which a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Before the policer and the queue.
    In,
    /// Behind the wire.
    Out,
}

impl Place {
    /// Reads `near`, `far`, the name of a link, or a link's name with `:out`.
    ///
    /// # Errors
    /// The experiment has no such link; the text lists its links.
    pub fn parse(text: &str, experiment: &Experiment) -> Result<Self, String> {
        let find = |name: &str| experiment.links.iter().position(|link| link.name == name);
        match text {
            "near" => return Ok(Self::Near),
            "far" => return Ok(Self::Far),
            _ => {}
        }
        if let Some(link) = find(text) {
            return Ok(Self::Link { link, end: LinkEnd::In });
        }
        match text.strip_suffix(":out").and_then(find) {
            Some(link) => Ok(Self::Link { link, end: LinkEnd::Out }),
            None => {
                let links: Vec<&str> = experiment.links.iter().map(|link| link.name.as_str()).collect();
                Err(format!(
                    "no place '{text}': near, far, or a link ({}), with ':out' as packets leave it",
                    links.join(", ")
                ))
            }
        }
    }
}
