//! Events: the links that they change, and their times.

use super::checks::find;
use super::queue::mean_rate;
use crate::file::{self, File};
use crate::model::{Change, Directions, Link, Path};
use parse::{BitRateOrZero, Diagnostic, Spanned};
use std::cmp::Reverse;
use units::{Instant, Rate};

/// The events of `file`, earliest first; of the same instant in file order.
pub(super) fn events(file: &File, links: &[Link], paths: &[Path]) -> Result<Vec<Change>, Diagnostic> {
    let mut changes = Vec::new();
    for event in &file.event {
        changes.extend(changes_of(event, links, paths)?);
    }
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

/// One change for each link that the event touches.
fn changes_of(spanned: &Spanned<file::Event>, links: &[Link], paths: &[Path]) -> Result<Vec<Change>, Diagnostic> {
    let event = spanned.get();
    if event.up.is_none() && event.rate.is_none() && event.delay.is_none() && event.loss.is_none() {
        return Err(
            Diagnostic::new(spanned.span(), "the event changes nothing").with_help("give up, rate, delay or loss")
        );
    }
    let chain = match (&event.path, &event.link) {
        (Some(name), None) => {
            let index = find("path", name.get(), name.span(), paths.iter().map(|path| path.name.as_str()))?;
            paths[index].links.clone()
        }
        (None, Some(name)) => vec![find("link", name.get(), name.span(), links.iter().map(|link| link.name.as_str()))?],
        _ => return Err(Diagnostic::new(spanned.span(), "an event names a `path` or a `link`")),
    };
    let slowest = slowest(&chain, links);
    if let Some(rate) = &event.rate {
        check_changeable_rate(&links[slowest], rate)?;
    }
    let longest = longest(&chain, links);
    let change = |&link: &usize| Change {
        at: Instant::ZERO + event.at.0,
        link,
        directions: directions(event.direction),
        up: event.up,
        rate: event.rate.as_ref().filter(|_| link == slowest).map(|rate| rate.get().0),
        delay: event.delay.filter(|_| link == longest).map(|delay| delay.0),
        loss: event.loss.filter(|_| link == slowest).map(|loss| loss.0),
    };
    let changes_anything = |c: &Change| c.up.is_some() || c.rate.is_some() || c.delay.is_some() || c.loss.is_some();
    Ok(chain.iter().map(change).filter(changes_anything).collect())
}

/// Refuses a new rate for a link that follows a trace or a random walk, or is served in grants.
fn check_changeable_rate(link: &Link, rate: &Spanned<BitRateOrZero>) -> Result<(), Diagnostic> {
    let pipes = [&link.forward, &link.reverse];
    let why = match pipes {
        _ if link.forward.trace.is_some() => "follows a trace; it has no rate to change",
        _ if pipes.iter().any(|pipe| pipe.grants.is_some()) => "is served in grants; its rate does not change",
        _ if link.rate_walks.iter().any(Option::is_some) => "has a `rate_walk`, which sets its rate",
        _ => return Ok(()),
    };
    Err(Diagnostic::new(rate.span(), format!("`{}` {why}", link.name)))
}

/// The link with the minimum rate; the first of equals.
fn slowest(chain: &[usize], links: &[Link]) -> usize {
    let rate = |link: &&usize| mean_rate(&links[**link].forward).unwrap_or(Rate(u64::MAX));
    chain.iter().min_by_key(rate).copied().unwrap_or_default()
}

/// The link with the longest delay; the first of equals.
fn longest(chain: &[usize], links: &[Link]) -> usize {
    chain.iter().min_by_key(|link| Reverse(links[**link].forward.delay)).copied().unwrap_or_default()
}

fn directions(direction: file::Direction) -> Directions {
    match direction {
        file::Direction::Forward => Directions::Forward,
        file::Direction::Reverse => Directions::Reverse,
        file::Direction::Both => Directions::Both,
    }
}
