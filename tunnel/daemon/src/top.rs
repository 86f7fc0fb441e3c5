//! `ropewalk top`: a live view of a tunnel.

use crate::show::{bits, duration};
use crate::status::{PathState, PathStatus, PeerStatus, TunnelStatus};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use std::io;
use std::time::{Duration, Instant};

/// The refresh interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// Blocks of 0 to 8 eighths of a column.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Draws the status that `request` returns until q, Esc or Ctrl-C.
///
/// # Errors
/// The terminal's error, or that of the first `request`. Later errors are shown, and the next request tries again.
pub fn top(mut request: impl FnMut() -> Result<TunnelStatus, String>) -> io::Result<()> {
    let mut status = request().map_err(io::Error::other)?;
    let mut failure = None;
    let mut terminal = ratatui::try_init()?;
    let outcome = loop {
        if let Err(error) = terminal.draw(|frame| draw(frame, &status, failure.as_deref())) {
            break Err(error);
        }
        match is_quit_within(INTERVAL) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
        match request() {
            Ok(new_status) => (status, failure) = (new_status, None),
            Err(error) => failure = Some(error),
        }
    };
    ratatui::try_restore()?;
    outcome
}

/// Waits for a key; returns whether it is q, Esc or Ctrl-C.
fn is_quit_within(time: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + time;
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if !event::poll(remaining)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(true),
                _ => {}
            },
            // Return, so that the screen is drawn again at once.
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
}

/// Draws one screen.
fn draw(frame: &mut Frame<'_>, status: &TunnelStatus, failure: Option<&str>) {
    // The frame takes two columns and two lines.
    let width = frame.area().width.saturating_sub(2);
    let lines = |peer: &PeerStatus| peer.paths.iter().map(|path| path_lines(path, width).len()).sum::<usize>();
    let height = |peer: &PeerStatus| Constraint::Length((2 + lines(peer)) as u16);
    let heights = status.peers.iter().map(height);
    let rows: Vec<_> = [Constraint::Length(2)].into_iter().chain(heights).chain([Constraint::Min(0)]).collect();
    let areas = Layout::vertical(rows).split(frame.area());
    frame.render_widget(Paragraph::new(heading(status, failure)), areas[0]);
    for (peer, area) in status.peers.iter().zip(areas.iter().skip(1)) {
        draw_peer(frame, peer, *area);
    }
}

fn heading(status: &TunnelStatus, failure: Option<&str>) -> Vec<Line<'static>> {
    let interface = &status.interface;
    let drops: u64 = status.drops.iter().map(|drop| drop.packets).sum();
    let (addresses, uptime) = (interface.addresses.join(" "), duration(status.uptime_s));
    let summary = format!("  {}  {addresses}", status.mode);
    let second_line = failure.map_or_else(
        || Line::from(vec![format!("up {uptime}  {drops} dropped  ").into(), "q quits".dim()]),
        |failure| Line::from(failure.to_owned().red()),
    );
    vec![Line::from(vec![interface.name.clone().bold(), summary.into()]), second_line]
}

fn draw_peer(frame: &mut Frame<'_>, peer: &PeerStatus, area: Rect) {
    let (reorder, ingress) = (&peer.reorder_buffer, &peer.ingress_queue);
    let details = format!(", timeout {:.0} ms, {} late", reorder.timeout_ms, reorder.late_packets);
    let bottom_title = format!(
        " reorder buffer {} packets{}; ingress queue {} bytes ",
        reorder.backlog_packets,
        if is_narrow(area.width) { "" } else { &details },
        ingress.backlog_bytes
    );
    let block = Block::bordered().title(format!(" peer {} ", peer.label())).title_bottom(bottom_title);
    let inner = block.inner(area);
    let lines: Vec<_> = peer.paths.iter().flat_map(|path| path_lines(path, inner.width)).collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Whether a terminal of `width` columns is too narrow for all numbers of a path in one line.
fn is_narrow(width: u16) -> bool {
    width < 80
}

/// The lines of a path: its numbers in one line or two; its share of the sent data, also as a bar (the full width is
/// all of it); and, if it carries no data, the cause and its remedy. `width` is that within the frame.
fn path_lines(path: &PathStatus, width: u16) -> Vec<Line<'static>> {
    let color = match path.state {
        PathState::Up => Color::Green,
        PathState::Validating => Color::Yellow,
        PathState::Down => Color::Red,
    };
    let srtt = path.srtt_ms.map_or("-".into(), |srtt| format!("{srtt:.1} ms"));
    let rates = format!(" ↑{:>12} ↓{:>12}", bits(path.send_rate_bps), bits(path.receive_rate_bps));
    let quality = format!(" {srtt:>9} {:>5.1}% loss", path.loss_ratio * 100.0);
    let state = match (path.state, path.backup, path.secondary) {
        (PathState::Up, true, _) => "up backup",
        (PathState::Up, false, true) => "up second.",
        (state, _, _) => state.as_str(),
    };
    let state = Span::styled(format!("{state:<10}"), Style::new().fg(color));
    let name = format!("{:<10.10} ", path.name).bold();
    let mut lines = if is_narrow(width + 2) {
        vec![Line::from(vec![name, state, quality.into()]), Line::from(rates)]
    } else {
        vec![Line::from(vec![name, state, (rates + &quality).into()])]
    };
    let share = format!("share {:>3.0}% ", path.send_share * 100.0);
    let bar = bar(path.send_share, width.saturating_sub(share.len() as u16));
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
        status.peers[0].paths[1].backup = true;
        terminal.draw(|frame| draw(frame, &status, None)).unwrap();
        let screen = terminal.backend().to_string();
        for text in [
            "dropped  q quits",
            "48.0 ms",
            "0.2% loss",
            "share  71% ██",
            "↑ 50.0 Mbit/s",
            "up backup",
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
        terminal.draw(|frame| draw(frame, &status, None)).unwrap();
        let screen = terminal.backend().to_string();
        for part in ["eth1 has no carrier", "this text says", "remedy: plug the cable in", "lte", "reorder buffer"] {
            assert!(screen.contains(part), "{part}\n{screen}");
        }
    }

    #[test]
    fn every_path_is_shown_in_eighty_columns() {
        let mut terminal = Terminal::new(TestBackend::new(80, 12)).unwrap();
        terminal.draw(|frame| draw(frame, &TunnelStatus::example(), None)).unwrap();
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
}
