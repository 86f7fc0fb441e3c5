//! `ropewalk top`: a live view of a tunnel.

use crate::show::{bits, duration};
use crate::status::{PathState, PathStatus, PeerStatus, TunnelStatus};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, SetArg, Termios};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// The refresh interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// Blocks of 0 to 8 eighths of a column.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

// Select Graphic Rendition parameters (ECMA-48, section 8.3.117).
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const GREY: &str = "90";

/// Draws the status that `request` returns until q, Esc or Ctrl-C. `size` returns columns and rows before each refresh.
///
/// # Errors
/// The terminal's, or that of the first `request`. Later ones are shown, and the next request tries again.
pub fn top(
    mut request: impl FnMut() -> Result<TunnelStatus, String>,
    size: impl Fn() -> (usize, usize),
) -> io::Result<()> {
    let mut shown = request().map_err(io::Error::other)?;
    let mut failure = None;
    let screen = Screen::open()?;
    loop {
        let (columns, rows) = size();
        screen.draw(&status_lines(&shown, failure.as_deref(), columns), rows)?;
        if quits_within(INTERVAL)? {
            return Ok(());
        }
        match request() {
            Ok(status) => (shown, failure) = (status, None),
            Err(error) => failure = Some(error),
        }
    }
}

/// The terminal's alternate screen in raw mode without a cursor. Dropping it restores the terminal.
struct Screen(Termios);

impl Screen {
    fn open() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &raw)?;
        let screen = Self(before);
        put("\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }

    /// Draws the first `rows` lines from the upper left corner.
    fn draw(&self, lines: &[String], rows: usize) -> io::Result<()> {
        let lines: Vec<_> = lines.iter().take(rows).map(|line| format!("{line}\x1b[K")).collect();
        put(&format!("\x1b[H{}\x1b[J", lines.join("\r\n")))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nowhere to report a failure.
        let _ = put("\x1b[?25h\x1b[?1049l");
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &self.0);
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Waits for a key; returns whether it is q, Esc or Ctrl-C, or the end of the input.
fn quits_within(time: Duration) -> io::Result<bool> {
    let mut stdin = io::stdin();
    let timeout = PollTimeout::try_from(time).expect("a second fits");
    match poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], timeout) {
        Ok(0) | Err(Errno::EINTR) => return Ok(false),
        Ok(_) => {}
        Err(errno) => return Err(errno.into()),
    }
    // An arrow key is an Esc followed by other bytes.
    let mut keys = [0; 16];
    let read = stdin.read(&mut keys)?;
    Ok(matches!(keys[..read], [] | [b'q' | b'\x1b' | b'\x03']))
}

/// The lines of the screen, `width` columns wide.
fn status_lines(status: &TunnelStatus, failure: Option<&str>, width: usize) -> Vec<String> {
    let interface = &status.interface;
    let drops: u64 = status.drops.iter().map(|drop| drop.packets).sum();
    let (addresses, up) = (interface.addresses.join(" "), duration(status.uptime_s));
    let name = styled(BOLD, &interface.name);
    let mut lines = vec![
        format!("{name}  {}  {addresses}  up {up}  {drops} dropped", status.mode),
        failure.map_or_else(|| styled(DIM, "q quits"), |failure| styled(RED, failure)),
    ];
    for peer in &status.peers {
        lines.extend(peer_lines(peer, width));
    }
    lines
}

fn styled(style: &str, text: &str) -> String {
    format!("\x1b[{style}m{text}\x1b[m")
}

fn peer_lines(peer: &PeerStatus, width: usize) -> Vec<String> {
    let (reorder, ingress) = (&peer.reorder_buffer, &peer.ingress_queue);
    let name = peer.public_key.as_deref().map_or("mpt", |key| key.get(..8).unwrap_or(key));
    let foot = format!(
        "reorder buffer {} packets, timeout {:.0} ms, {} late; ingress queue {} bytes",
        reorder.backlog_packets, reorder.timeout_ms, reorder.late_packets, ingress.backlog_bytes
    );
    let fastest =
        peer.paths.iter().map(|path| path.delivery_rate_bps.max(path.send_rate_bps)).max().unwrap_or(0).max(1);
    let paths = peer.paths.iter().flat_map(|path| path_lines(path, fastest, width));
    [rule(&format!("peer {name}"), width)].into_iter().chain(paths).chain([rule(&foot, width)]).collect()
}

/// A horizontal rule with a text in it.
fn rule(text: &str, width: usize) -> String {
    let text = format!("── {text} ");
    let rest = width.saturating_sub(text.chars().count());
    text + &"─".repeat(rest)
}

/// A line of numbers, and a bar: the send rate, against the delivery rate of the fastest path.
fn path_lines(path: &PathStatus, fastest: u64, width: usize) -> [String; 2] {
    let color = match path.state {
        PathState::Up => GREEN,
        PathState::Validating => YELLOW,
        PathState::Down => RED,
        PathState::Disabled => GREY,
    };
    let srtt = path.srtt_ms.map_or("-".into(), |srtt| format!("{srtt:.1} ms"));
    let numbers = format!(
        " ↑{:>12} ↓{:>12} {srtt:>9} {:>5.1}% loss {:>3.0}%",
        bits(path.send_rate_bps),
        bits(path.receive_rate_bps),
        path.loss_ratio * 100.0,
        path.send_share * 100.0
    );
    let name = styled(BOLD, &format!("{:<10.10} ", path.name));
    let state = styled(color, &format!("{:<10}", path.state.word()));
    [format!("{name}{state}{numbers}"), styled(color, &bar(path.send_rate_bps, fastest, width))]
}

/// `value` of `max` in `width` columns, to an eighth of a column.
fn bar(value: u64, max: u64, width: usize) -> String {
    let eighths = (u128::from(value) * width as u128 * 8 / u128::from(max.max(1))) as usize;
    let eighths = eighths.min(width * 8);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_to_an_eighth_of_a_column() {
        assert_eq!(bar(1, 2, 4), "██");
        assert_eq!(bar(3, 16, 2), "▍");
        assert_eq!((bar(0, 5, 9), bar(9, 1, 3)), (String::new(), "███".into()));
    }

    #[test]
    fn every_path_is_shown_in_eighty_columns() {
        let lines: Vec<_> = status_lines(&TunnelStatus::example(), None, 80).iter().map(|line| plain(line)).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let all = lines.join("\n");
        for text in [
            "rw0",
            "fibre",
            "lte",
            "↑ 50.0 Mbit/s",
            "48.0 ms",
            "0.2% loss  71%",
            "reorder buffer 12 packets, timeout 42 ms",
        ] {
            assert!(all.contains(text), "{text}\n{all}");
        }
        // Two lines of heading, one above the paths, and two for each path.
        let foot = lines.iter().position(|line| line.contains("reorder buffer"));
        assert_eq!(foot, Some(2 + 1 + 2 * TunnelStatus::example().peers[0].paths.len()), "{all}");
    }

    /// The text of a line without escape sequences.
    fn plain(line: &str) -> String {
        let mut parts = line.split("\x1b[");
        let first = parts.next().unwrap_or_default().to_owned();
        first + &parts.map(|part| part.split_once('m').expect("styles only").1).collect::<String>()
    }
}
