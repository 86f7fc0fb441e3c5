//! `ropewalk top`: a tunnel as it is at this moment, drawn anew every second.

use crate::show::{bits, duration};
use crate::status::{Path, Peer, State, Status};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use std::io;
use std::time::{Duration, Instant};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Eighths of a column.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Draws what `look` answers until q, Esc or Ctrl-C.
///
/// # Errors
/// The terminal refuses, or `look` fails when it is asked first; later failures are shown, and the next look tries again.
pub fn top(mut look: impl FnMut() -> Result<Status, String>) -> io::Result<()> {
    let mut shown = look().map_err(io::Error::other)?;
    let mut trouble = None;
    let mut terminal = ratatui::try_init()?;
    let outcome = loop {
        if let Err(error) = terminal.draw(|frame| draw(frame, &shown, trouble.as_deref())) {
            break Err(error);
        }
        match quits_within(INTERVAL) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
        match look() {
            Ok(status) => (shown, trouble) = (status, None),
            Err(error) => trouble = Some(error),
        }
    };
    ratatui::try_restore()?;
    outcome
}

fn quits_within(time: Duration) -> io::Result<bool> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(true),
                _ => {}
            },
            // A new size: draw at once.
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
}

/// One picture.
fn draw(frame: &mut Frame<'_>, status: &Status, trouble: Option<&str>) {
    let heights = status.peers.iter().map(|peer| Constraint::Length(2 + 2 * peer.paths.len() as u16));
    let rows: Vec<_> = [Constraint::Length(2)].into_iter().chain(heights).chain([Constraint::Min(0)]).collect();
    let areas = Layout::vertical(rows).split(frame.area());
    frame.render_widget(Paragraph::new(heading(status, trouble)), areas[0]);
    for (peer, area) in status.peers.iter().zip(areas.iter().skip(1)) {
        draw_peer(frame, peer, *area);
    }
}

fn heading(status: &Status, trouble: Option<&str>) -> Vec<Line<'static>> {
    let it = &status.interface;
    let drops: u64 = status.drops.iter().map(|drop| drop.packets).sum();
    let first = Line::from(vec![
        it.name.clone().bold(),
        format!("  {}  {}  up {}  {drops} dropped", status.mode, it.addresses.join(" "), duration(status.uptime_s))
            .into(),
    ]);
    let second = trouble.map_or_else(|| Line::from("q quits".dim()), |trouble| Line::from(trouble.to_owned().red()));
    vec![first, second]
}

fn draw_peer(frame: &mut Frame<'_>, peer: &Peer, area: Rect) {
    let (reordering, entrance) = (&peer.reordering, &peer.entrance);
    let name = peer.public_key.as_deref().map_or("mpt", |key| key.get(..8).unwrap_or(key));
    let foot = format!(
        " reordering {} packets, hold {:.0} ms, {} late; queue {} bytes ",
        reordering.depth_packets, reordering.hold_ms, reordering.late_packets, entrance.queued_bytes
    );
    let block = Block::bordered().title(format!(" peer {name} ")).title_bottom(foot);
    let inner = block.inner(area);
    let fastest = peer.paths.iter().map(|path| path.delivery_bps.max(path.sending_bps)).max().unwrap_or(0).max(1);
    let lines: Vec<_> = peer.paths.iter().flat_map(|path| path_lines(path, fastest, inner.width)).collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// A line of numbers, and a bar: what is sent, against what the fastest path delivers.
fn path_lines(path: &Path, fastest: u64, width: u16) -> [Line<'static>; 2] {
    let color = match path.state {
        State::Up => Color::Green,
        State::Validating => Color::Yellow,
        State::Down => Color::Red,
        State::Disabled => Color::DarkGray,
    };
    let rtt = path.rtt_ms.map_or("-".into(), |rtt| format!("{rtt:.1} ms"));
    let numbers = format!(
        " ↑{:>12} ↓{:>12} {rtt:>9} {:>5.1}% loss {:>3.0}%",
        bits(path.sending_bps),
        bits(path.receiving_bps),
        path.loss * 100.0,
        path.share * 100.0
    );
    let state = Span::styled(format!("{:<10}", path.state.word()), Style::new().fg(color));
    let name = format!("{:<10.10} ", path.name).bold();
    [
        Line::from(vec![name, state, numbers.into()]),
        Line::styled(bar(path.sending_bps, fastest, width), Style::new().fg(color)),
    ]
}

/// `value` of `most` in `width` columns, to an eighth of a column.
fn bar(value: u64, most: u64, width: u16) -> String {
    let eighths = (u128::from(value) * u128::from(width) * 8 / u128::from(most.max(1))) as usize;
    let eighths = eighths.min(usize::from(width) * 8);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_bar_is_as_long_as_its_share_to_an_eighth_of_a_column() {
        assert_eq!(bar(1, 2, 4), "██");
        assert_eq!(bar(3, 16, 2), "▍");
        assert_eq!((bar(0, 5, 9), bar(9, 1, 3)), (String::new(), "███".into()));
    }

    #[test]
    fn the_picture_shows_every_path_in_eighty_columns() {
        let mut terminal = Terminal::new(TestBackend::new(80, 12)).unwrap();
        terminal.draw(|frame| draw(frame, &Status::example(), None)).unwrap();
        let picture = terminal.backend().to_string();
        for text in
            ["rw0", "fibre", "lte", "↑ 50.0 Mbit/s", "48.0 ms", "0.2% loss  71%", "reordering 12 packets, hold 42 ms"]
        {
            assert!(picture.contains(text), "{text}\n{picture}");
        }
        // Two lines of heading, the frame's own two, and two for each path.
        let foot = picture.lines().position(|line| line.contains("reordering"));
        assert_eq!(foot, Some(2 + 1 + 2 * Status::example().peers[0].paths.len()), "{picture}");
    }
}
