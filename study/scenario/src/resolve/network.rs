//! Links and paths.

use super::checks::{Names, check_positive, find, parse_bytes};
use super::queue::{self, BdpLimit};
use super::variation;
use super::{fat_tree, pipe};
use crate::file::{self, File, Name, Reverse, TraceOffset};
use crate::files::Files;
use crate::model::{Link, Path};
use link::{LossModel, PipeConfig};
use parse::{Diagnostic, Size, Spanned};
use units::Span;

/// The default MTU of a path, bytes: that of Ethernet.
pub(crate) const DEFAULT_MTU: u32 = 1500;

/// The links resolved so far, and their queue limits in bandwidth-delay products, which are resolved once all paths are
/// known.
pub(super) struct Links<'t> {
    links: Vec<Link>,
    names: Names,
    bdp_limits: Vec<[Option<BdpLimit>; 2]>,
    files: &'t mut Files,
}

/// Resolves the links and the paths of `file`.
pub(super) fn resolve_network(file: &File, files: &mut Files) -> Result<(Vec<Link>, Vec<Path>), Diagnostic> {
    if let Some(tree) = &file.fat_tree {
        return fat_tree::network(file, tree, Links::new(files));
    }
    if file.path.is_empty() {
        let diagnostic = Diagnostic::new(file.name.span(), "the scenario has no path").with_key("path");
        return Err(diagnostic.with_help("[[path]] with name = \"a\", rate = \"100mbit\", delay = \"10ms\""));
    }
    let mut links = Links::new(files);
    for link in &file.link {
        links.add(&link.name, &link.pipe(), link.reverse.as_ref(), link.handover.as_ref())?;
    }
    let declared_links = links.links.len();
    let (mut paths, mut path_names) = (Vec::new(), Names::default());
    for path in &file.path {
        let name = path_names.take("path", &path.name.get().0, path.name.span())?;
        let chain = match &path.links {
            Some(chain) => link_indices(path, chain, &links.links[..declared_links])?,
            None => {
                vec![links.add(&path.name, &path.pipe(), path.reverse.as_ref(), path.handover.as_ref())?]
            }
        };
        paths.push(Path { name, turn: chain.len(), links: chain, mtu: mtu(path.mtu.as_ref())? });
    }
    Ok((links.resolve_queue_limits(&paths)?, paths))
}

/// The largest packet of a path, bytes.
pub(super) fn mtu(mtu: Option<&Spanned<Size>>) -> Result<u32, Diagnostic> {
    mtu.map_or(Ok(DEFAULT_MTU), |mtu| check_positive("mtu", mtu, |mtu| mtu.0).and_then(|_| parse_bytes(mtu)))
}

/// The indices of the `[[link]]`s that a path names, in order.
fn link_indices(
    path: &file::Path,
    chain: &Spanned<Vec<Spanned<String>>>,
    links: &[Link],
) -> Result<Vec<usize>, Diagnostic> {
    if path.reverse.is_some() || path.handover.is_some() || !path.pipe().is_empty() {
        let diagnostic = Diagnostic::new(chain.span(), "a path has `links`, or a link of its own, not both");
        return Err(diagnostic.with_help("move rate, delay, queue ... into a [[link]]"));
    }
    if chain.get().is_empty() {
        return Err(Diagnostic::new(chain.span(), "a path crosses at least one link"));
    }
    let mut indices = Vec::new();
    for name in chain.get() {
        let index = find("link", name.get(), name.span(), links.iter().map(|link| link.name.as_str()))?;
        if indices.contains(&index) {
            return Err(Diagnostic::new(name.span(), format!("the path crosses `{}` twice", name.get())));
        }
        indices.push(index);
    }
    Ok(indices)
}

impl<'t> Links<'t> {
    fn new(files: &'t mut Files) -> Self {
        Self { links: Vec::new(), names: Names::default(), bdp_limits: Vec::new(), files }
    }

    /// Adds a link and returns its index.
    fn add(
        &mut self,
        name: &Spanned<Name>,
        forward: &file::Pipe,
        reverse: Option<&Reverse>,
        handover: Option<&Spanned<file::Handover>>,
    ) -> Result<usize, Diagnostic> {
        let name = self.names.take("link", &name.get().0, name.span())?;
        let reverse = reverse.map_or(forward.clone(), |reverse| reverse.pipe().with_defaults_from(forward));
        self.push(name, forward, &reverse, handover)?;
        Ok(self.links.len() - 1)
    }

    fn push(
        &mut self,
        name: String,
        forward: &file::Pipe,
        reverse: &file::Pipe,
        handover: Option<&Spanned<file::Handover>>,
    ) -> Result<(), Diagnostic> {
        let walk =
            |pipe: &file::Pipe| pipe.rate_walk.as_ref().map(|table| variation::rate_walk(table, pipe)).transpose();
        let rate_walks = [walk(forward)?, walk(reverse)?];
        let is_random = |pipe: &file::Pipe| matches!(&pipe.trace_offset, Some(o) if *o.get() == TraceOffset::Random);
        let random_trace_offset = [is_random(forward), is_random(reverse)];
        let ((forward, forward_limit), (reverse, reverse_limit)) =
            (self.resolve_pipe(forward)?, self.resolve_pipe(reverse)?);
        let handover = handover.map(variation::handover).transpose()?;
        self.links.push(Link { name, forward, reverse, handover, rate_walks, random_trace_offset });
        self.bdp_limits.push([forward_limit, reverse_limit]);
        Ok(())
    }

    /// Adds links that are alike in both directions, with names of their own.
    pub(super) fn add_alike(
        &mut self,
        pipe: &file::Pipe,
        names: impl Iterator<Item = String>,
    ) -> Result<(), Diagnostic> {
        names.into_iter().try_for_each(|name| self.push(name, pipe, pipe, None))
    }

    /// Resolves one direction of a link, and its queue limit if that is in bandwidth-delay products.
    fn resolve_pipe(&mut self, pipe_table: &file::Pipe) -> Result<(PipeConfig, Option<BdpLimit>), Diagnostic> {
        let trace = pipe_table.trace.as_ref();
        if let (Some(trace), true) = (trace, pipe_table.rate.is_some()) {
            return Err(Diagnostic::new(trace.span(), "a link follows a trace or has a rate, not both"));
        }
        let trace_offset = trace_offset(pipe_table)?;
        let trace = trace.map(|name| {
            self.files.trace(name.get()).map_err(|diagnostic| Diagnostic { span: name.span(), ..diagnostic })
        });
        let rate = pipe_table.rate.map(|rate| rate.0);
        let grants = pipe_table.grants.as_ref().map(|table| pipe::grants(table, rate));
        let delay = pipe_table.delay.map_or(Span::ZERO, |delay| delay.0);
        let reorder = pipe_table.reorder.as_ref().map(|table| pipe::reorder(table, delay));
        let overhead = pipe_table.overhead.as_ref().map_or(Ok(0), parse_bytes)?;
        let local = pipe_table.local.unwrap_or(false);
        let policer = pipe_table.policer.as_ref().map(|table| pipe::policer(table, overhead, local));
        let slot = pipe_table.slot.as_ref().map(pipe::slot);
        let (queue, bdp_limit) = queue::queue(pipe_table.queue.as_ref())?;
        let pipe = PipeConfig {
            rate,
            trace: trace.transpose()?,
            trace_offset,
            grants: grants.transpose()?,
            delay,
            jitter: pipe_table.jitter.map_or_else(link::Jitter::default, |jitter| jitter.0),
            loss: pipe_table.loss.map_or(LossModel::None, |loss| loss.0),
            duplicate: pipe_table.duplicate.map_or(0.0, |share| share.0),
            corrupt: pipe_table.corrupt.map_or(0.0, |share| share.0),
            reorder: reorder.transpose()?.unwrap_or_default(),
            overhead,
            policer: policer.transpose()?,
            queue,
            local,
            wire_limit: pipe_table.wire_limit.map(|limit| limit.0),
            slot: slot.transpose()?,
        };
        Ok((pipe, bdp_limit))
    }

    /// Resolves the queue limits in bandwidth-delay products and returns the links.
    pub(super) fn resolve_queue_limits(self, paths: &[Path]) -> Result<Vec<Link>, Diagnostic> {
        let mut links = self.links.clone();
        for (index, [forward, reverse]) in self.bdp_limits.iter().enumerate() {
            if let Some(limit) = forward {
                links[index].forward.queue.limit =
                    queue::resolve_bdp_limit(limit, index, &self.links, paths, |link| &link.forward)?;
            }
            if let Some(limit) = reverse {
                links[index].reverse.queue.limit =
                    queue::resolve_bdp_limit(limit, index, &self.links, paths, |link| &link.reverse)?;
            }
        }
        Ok(links)
    }
}

/// The offset in a table. A random offset is drawn per run.
fn trace_offset(pipe: &file::Pipe) -> Result<Span, Diagnostic> {
    let Some(offset) = &pipe.trace_offset else { return Ok(Span::ZERO) };
    let problem = match offset.get() {
        _ if pipe.trace.is_none() => "an offset needs a trace",
        TraceOffset::At(time) if !time.0.0.is_multiple_of(1_000_000) => "an offset is a whole number of milliseconds",
        TraceOffset::At(time) => return Ok(time.0),
        TraceOffset::Random => return Ok(Span::ZERO),
    };
    Err(Diagnostic::new(offset.span(), problem).with_help("trace = \"FILE\", trace_offset = \"20s\" or \"random\""))
}
