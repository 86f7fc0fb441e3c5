//! `ropewalk top`: a live view of a tunnel.

use crate::show::{bits, duration, or_dash, percent};
use crate::status::{Condition, PathStatus, PeerCondition, PeerStatus, TunnelStatus};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use std::cmp::Reverse;
use std::io;
use std::time::{Duration, Instant};

/// The refresh interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// Lines by which Page Up and Page Down move.
const PAGE: usize = 10;
/// Columns of a peer's row without its name, and the least of the name.
const ROW: u16 = 66;
const LEAST_NAME: u16 = 14;
/// Blocks of 0 to 8 eighths of a column.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// What the screen shows, as the keys have chosen.
#[derive(Debug, Default)]
struct View {
    sort: Sort,
    /// The place of the chosen peer in the list.
    chosen: usize,
    /// Whether the chosen peer fills the screen.
    is_open: bool,
    /// Lines that the list, or the open peer, is scrolled by.
    scrolled: usize,
}

/// The order of the peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    /// What is wrong, worst first.
    #[default]
    Trouble,
    Name,
    Rate,
    Rtt,
    Loss,
}

impl Sort {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Trouble, "trouble"),
        (Self::Name, "name"),
        (Self::Rate, "rate"),
        (Self::Rtt, "RTT"),
        (Self::Loss, "loss"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(sort, _)| *sort == self).map_or("", |(_, name)| name)
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|(sort, _)| *sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()].0
    }

    /// The peers in this order; those that are equal stay in the order of the file.
    fn sorted(self, peers: &[PeerStatus]) -> Vec<&PeerStatus> {
        let mut peers: Vec<_> = peers.iter().collect();
        let rate = |peer: &PeerStatus| peer.rates_bps().iter().sum::<u64>();
        let descending = |a: Option<f64>, b: Option<f64>| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0));
        match self {
            Self::Trouble => peers.sort_by_key(|peer| (Reverse(peer.condition), peer.working_paths())),
            Self::Name => peers.sort_by(|a, b| a.label().cmp(b.label())),
            Self::Rate => peers.sort_by_key(|peer| Reverse(rate(peer))),
            Self::Rtt => peers.sort_by(|a, b| descending(a.srtt_ms(), b.srtt_ms())),
            Self::Loss => peers.sort_by(|a, b| descending(a.loss_ratio(), b.loss_ratio())),
        }
        peers
    }
}

/// Draws the status that `request` returns until q or Ctrl-C.
///
/// # Errors
/// The terminal's error, or that of the first `request`. Later errors are shown, and the next request tries again.
pub fn top(mut request: impl FnMut() -> Result<TunnelStatus, String>) -> io::Result<()> {
    let mut status = request().map_err(io::Error::other)?;
    let mut failure = None;
    let mut view = View::default();
    let mut terminal = ratatui::try_init()?;
    let mut due = Instant::now() + INTERVAL;
    let outcome = loop {
        if let Err(error) = terminal.draw(|frame| draw(frame, &mut view, &status, failure.as_deref())) {
            break Err(error);
        }
        match key_within(due.saturating_duration_since(Instant::now())) {
            Ok(Some(KeyCode::Char('q'))) => break Ok(()),
            Ok(Some(key)) if view.on_key(key, status.peers.len()) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
        if Instant::now() >= due {
            due = Instant::now() + INTERVAL;
            match request() {
                Ok(new_status) => (status, failure) = (new_status, None),
                Err(error) => failure = Some(error),
            }
        }
    };
    ratatui::try_restore()?;
    outcome
}

/// Waits for a key; q stands for Ctrl-C. `None` if none was pressed in this time, or the size has changed.
fn key_within(time: Duration) -> io::Result<Option<KeyCode>> {
    if !event::poll(time)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(KeyCode::Char('q')),
            code => Some(code),
        },
        _ => None,
    })
}

impl View {
    /// Acts on a key; returns whether it ends the program.
    fn on_key(&mut self, key: KeyCode, peers: usize) -> bool {
        let last = peers.saturating_sub(1);
        let position = if self.shows_list(peers) { &mut self.chosen } else { &mut self.scrolled };
        match key {
            KeyCode::Down | KeyCode::Char('j') => *position += 1,
            KeyCode::Up | KeyCode::Char('k') => *position = position.saturating_sub(1),
            KeyCode::PageDown => *position += PAGE,
            KeyCode::PageUp => *position = position.saturating_sub(PAGE),
            KeyCode::Home => *position = 0,
            KeyCode::End => *position = usize::MAX / 2,
            KeyCode::Char('s') => (self.sort, self.chosen) = (self.sort.next(), 0),
            KeyCode::Enter => (self.is_open, self.scrolled) = (true, 0),
            KeyCode::Esc if self.is_open && peers > 1 => (self.is_open, self.scrolled) = (false, 0),
            KeyCode::Esc => return true,
            _ => {}
        }
        self.chosen = self.chosen.min(last);
        false
    }

    fn shows_list(&self, peers: usize) -> bool {
        peers > 1 && !self.is_open
    }
}

/// Draws one screen.
fn draw(frame: &mut Frame<'_>, view: &mut View, status: &TunnelStatus, failure: Option<&str>) {
    let is_list = view.shows_list(status.peers.len());
    let areas = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).split(frame.area());
    frame.render_widget(Paragraph::new(heading(status, view, failure)), areas[0]);
    let peers = view.sort.sorted(&status.peers);
    if is_list {
        draw_list(frame, view, &peers, (areas[1], status.unix_ms));
    } else if let Some(peer) = peers.get(view.chosen) {
        draw_peer(frame, view, peer, areas[1]);
    }
}

fn heading(status: &TunnelStatus, view: &View, failure: Option<&str>) -> Vec<Line<'static>> {
    let interface = &status.interface;
    let drops: u64 = status.drops.iter().map(|drop| drop.packets).sum();
    let (addresses, uptime) = (interface.addresses.join(" "), duration(status.uptime_s));
    let summary = format!("  {}  {addresses}", status.mode);
    let keys = match (status.peers.len(), view.is_open) {
        (0..=1, _) => "q quits".to_owned(),
        (_, true) => "Esc: all peers  q quits".into(),
        (_, false) => format!("by {}: s  Enter opens  q quits", view.sort.name()),
    };
    let second_line = failure.map_or_else(
        || Line::from(vec![format!("up {uptime}  {drops} dropped  ").into(), keys.dim()]),
        |failure| Line::from(failure.to_owned().red()),
    );
    vec![Line::from(vec![interface.name.clone().bold(), summary.into()]), second_line]
}

/// Draws one row for each peer, and keeps the chosen one in view.
fn draw_list(frame: &mut Frame<'_>, view: &mut View, peers: &[&PeerStatus], (area, now_ms): (Rect, u64)) {
    let rows = usize::from(area.height).saturating_sub(2).max(1);
    view.scrolled = view.scrolled.clamp((view.chosen + 1).saturating_sub(rows), view.chosen);
    let width = usize::from(area.width.saturating_sub(ROW).max(LEAST_NAME));
    let numbers = format!("paths {:>12} {:>12} {:>7} {:>6}  since", "sent", "received", "RTT", "loss");
    let title = format!("  {:<width$} {:<10} {numbers}", "peer", "");
    let mut lines = vec![Line::from(title.dim())];
    let shown = peers.iter().enumerate().skip(view.scrolled).take(rows);
    lines.extend(shown.map(|(index, peer)| peer_row(peer, index == view.chosen, (width, now_ms))));
    let end = peers.len().min(view.scrolled + rows);
    lines.push(Line::from(format!("  {} to {end} of {} peers", view.scrolled + 1, peers.len()).dim()));
    frame.render_widget(Paragraph::new(lines), area);
}

fn peer_row(peer: &PeerStatus, is_chosen: bool, (width, now_ms): (usize, u64)) -> Line<'static> {
    let color = match peer.condition {
        PeerCondition::Up => Color::Green,
        PeerCondition::Connecting | PeerCondition::Degraded => Color::Yellow,
        PeerCondition::Lost => Color::Red,
    };
    let paths = format!("{}/{}", peer.working_paths(), peer.paths.len());
    let [sent, received] = peer.rates_bps().map(|rate| if peer.working_paths() > 0 { bits(rate) } else { "-".into() });
    let srtt = or_dash(peer.srtt_ms(), |srtt| format!("{srtt:.0} ms"));
    let loss = or_dash(peer.loss_ratio(), percent);
    let since = or_dash(peer.since_unix_ms, |since| age(now_ms.saturating_sub(since)));
    let numbers = format!(" {paths:>5} {sent:>12} {received:>12} {srtt:>7} {loss:>6}  {since}");
    let name = format!("{} {:<width$.width$} ", if is_chosen { ">" } else { " " }, peer.label());
    let state = Span::styled(format!("{:<10}", peer.condition.to_string()), Style::new().fg(color));
    let line = Line::from(vec![name.bold(), state, numbers.into()]);
    if is_chosen { line.reversed() } else { line }
}

/// A time in its largest unit.
fn age(ms: u64) -> String {
    duration(ms as f64 / 1e3).split(' ').next().unwrap_or_default().to_owned()
}

fn draw_peer(frame: &mut Frame<'_>, view: &mut View, peer: &PeerStatus, area: Rect) {
    let (reorder, ingress) = (&peer.reorder_buffer, &peer.ingress_queue);
    let timeout = or_dash(reorder.timeout_ms, |ms| format!("{ms:.0} ms"));
    let details = format!(", timeout {timeout}, {} late", reorder.late_packets);
    let bottom_title = format!(
        " reorder buffer {} packets{}; ingress queue {} bytes ",
        reorder.backlog_packets,
        if is_narrow(area.width) { "" } else { &details },
        ingress.backlog_bytes
    );
    let block = Block::bordered().title(format!(" peer {} ", peer.label())).title_bottom(bottom_title);
    let lines: Vec<_> = peer.paths.iter().flat_map(|path| path_lines(path, block.inner(area).width)).collect();
    let area = Rect { height: area.height.min(lines.len() as u16 + 2), ..area };
    view.scrolled = view.scrolled.min(lines.len().saturating_sub(usize::from(block.inner(area).height)));
    frame.render_widget(Paragraph::new(lines).block(block).scroll((view.scrolled as u16, 0)), area);
}

/// Whether a terminal of `width` columns is too narrow for all numbers of a path in one line.
fn is_narrow(width: u16) -> bool {
    width < 80
}

/// The lines of a path: its numbers in one line or two; its share of the sent data, also as a bar (the full width is
/// all of it); and, if it carries no data, the cause and its remedy. `width` is that within the frame.
fn path_lines(path: &PathStatus, width: u16) -> Vec<Line<'static>> {
    let color = match path.condition {
        Condition::Up | Condition::Standby => Color::Green,
        Condition::Down => Color::Red,
        _ => Color::Yellow,
    };
    let srtt = or_dash(path.srtt_ms, |srtt| format!("{srtt:.1} ms"));
    let rates = format!(" ↑{:>12} ↓{:>12}", bits(path.send_rate_bps), bits(path.receive_rate_bps));
    let quality = format!(" {srtt:>9} {:>6} loss", or_dash(path.loss_ratio, percent));
    let state = path.condition.to_string();
    let state = Span::styled(format!("{state:<10}"), Style::new().fg(color));
    let name = format!("{:<10.10} ", path.name).bold();
    let mut lines = if is_narrow(width + 2) {
        vec![Line::from(vec![name, state, quality.into()]), Line::from(rates)]
    } else {
        vec![Line::from(vec![name, state, (rates + &quality).into()])]
    };
    let send_share = path.send_share.unwrap_or(0.0);
    let capacity = path.capacity_bps.map_or_else(String::new, |bps| format!("capacity {:<13}", bits(bps)));
    let share = format!("{capacity}share {:>3.0}% ", send_share * 100.0);
    let bar = bar(send_share, width.saturating_sub(share.len() as u16));
    lines.push(Line::from(vec![share.into(), Span::styled(bar, Style::new().fg(color))]));
    if let Some(cause) = &path.cause {
        lines.extend(wrapped(&cause.text, width).into_iter().map(|line| Line::styled(line, Style::new().fg(color))));
        lines.extend(wrapped(&format!("remedy: {}", cause.remedy), width).into_iter().map(Line::from));
    }
    lines
}

/// A text in lines of `width` columns, broken at blanks.
fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= usize::from(width) {
            *line += &format!(" {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A share, 0 to 1, of `width` columns, to an eighth of a column.
fn bar(share: f64, width: u16) -> String {
    let eighths = (share.clamp(0.0, 1.0) * f64::from(width) * 8.0) as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Cause, CauseKind};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn the_length_of_a_bar_is_exact_to_an_eighth_of_a_column() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.1875, 2), "▍");
        assert_eq!((bar(0.0, 9), bar(9.0, 3)), (String::new(), "███".into()));
    }

    #[test]
    fn nothing_is_cut_in_sixty_columns() {
        let mut terminal = Terminal::new(TestBackend::new(60, 16)).unwrap();
        let mut status = TunnelStatus::example();
        status.peers[0].paths[1].condition = Condition::Standby;
        terminal.draw(|frame| draw(frame, &mut View::default(), &status, None)).unwrap();
        let screen = terminal.backend().to_string();
        for text in [
            "dropped  q quits",
            "48.0 ms",
            "0.2% loss",
            "share  71% ██",
            "↑ 50.0 Mbit/s",
            "standby",
            "ingress queue",
            " bytes ─",
        ] {
            assert!(screen.contains(text), "{text}\n{screen}");
        }
    }

    #[test]
    fn a_cause_and_its_remedy_are_shown_whole() {
        let mut terminal = Terminal::new(TestBackend::new(60, 24)).unwrap();
        let mut status = TunnelStatus::example();
        let [text, remedy] =
            ["eth1 has no carrier and has had none for a while, which this text says", "plug the cable in"];
        let (kind, text, remedy) = (CauseKind::NoCarrier, text.to_owned(), remedy.to_owned());
        status.peers[0].paths[0].cause = Some(Cause { kind, text, remedy });
        terminal.draw(|frame| draw(frame, &mut View::default(), &status, None)).unwrap();
        let screen = terminal.backend().to_string();
        for part in ["eth1 has no carrier", "this text says", "remedy: plug the cable in", "lte", "reorder buffer"] {
            assert!(screen.contains(part), "{part}\n{screen}");
        }
    }

    #[test]
    fn every_path_is_shown_in_eighty_columns() {
        let mut terminal = Terminal::new(TestBackend::new(80, 12)).unwrap();
        terminal.draw(|frame| draw(frame, &mut View::default(), &TunnelStatus::example(), None)).unwrap();
        let screen = terminal.backend().to_string();
        for text in [
            "rw0",
            "fibre",
            "lte",
            "↑ 50.0 Mbit/s",
            "48.0 ms",
            "0.2% loss",
            "share  71% ██",
            "reorder buffer 12 packets, timeout 42 ms",
        ] {
            assert!(screen.contains(text), "{text}\n{screen}");
        }
        // Two lines of heading, the frame's own two, and two for each path.
        let last_line = screen.lines().position(|line| line.contains("reorder buffer"));
        assert_eq!(last_line, Some(2 + 1 + 2 * TunnelStatus::example().peers[0].paths.len()), "{screen}");
    }

    #[test]
    fn forty_peers_fit_a_screen_of_eighty_by_twenty_four_by_scrolling_and_the_worst_come_first() {
        let mut status = TunnelStatus::example();
        let peer = status.peers[0].clone();
        let named = |number: usize| PeerStatus { name: Some(format!("site-{number:02}")), ..peer.clone() };
        status.peers = (0..40).map(named).collect();
        status.peers[33].condition = PeerCondition::Lost;
        status.peers[33].since_unix_ms = Some(status.unix_ms - 7_300_000);
        status.peers[7].condition = PeerCondition::Degraded;
        let mut view = View::default();
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let mut screen = |view: &mut View| -> Vec<String> {
            terminal.draw(|frame| draw(frame, view, &status, None)).unwrap();
            terminal.backend().to_string().lines().map(str::to_owned).collect()
        };
        let lines = screen(&mut view);
        assert!(lines[3].contains("> site-33        lost") && lines[3].contains("2h"), "{lines:#?}");
        assert!(lines[4].contains("site-07        degraded") && lines[5].contains("site-00"), "{lines:#?}");
        assert!(lines[23].contains("1 to 20 of 40 peers") && lines[0].contains("rw0"), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains('│') && !line.contains('─')), "one row each: {lines:#?}");
        (0..25).for_each(|_| assert!(!view.on_key(KeyCode::Down, 40)));
        let lines = screen(&mut view);
        assert!(lines[22].contains("> site-24") && lines[23].contains("7 to 26 of 40 peers"), "{lines:#?}");
        view.on_key(KeyCode::Char('s'), 40);
        assert!(screen(&mut view)[3].contains("> site-00") && view.sort == Sort::Name);
        view.on_key(KeyCode::End, 40);
        view.on_key(KeyCode::Enter, 40);
        let lines = screen(&mut view);
        assert!(lines[2].contains("peer site-39") && lines[3].contains("fibre"), "{lines:#?}");
        assert!(!view.on_key(KeyCode::Esc, 40) && view.on_key(KeyCode::Esc, 40), "back, and out");
    }
}
