//! The times that handshakes carry. Each must be later than the one before: a peer refuses any other, so that
//! handshakes cannot be replayed. A machine whose clock was set back, or that has none and boots in the past, would be
//! refused until its clock is right, and may have no other way to set it than the tunnel.
//!
//! So a file keeps a time that no handshake has reached yet, and after the next start the daemon sends no earlier one.
//! The kept time is ahead of the clock, so that the file is written only twice per hour. If the clock is behind,
//! handshakes count on from the kept time, one nanosecond each. None of this is visible from outside: the time is sent
//! encrypted.

use crate::kept_file::{Place, TwoCopies};
use filesystem::LockedFile;
use nix::unistd::User;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::warn;

/// How far the kept time is ahead of the clock after it was written, ns.
const AHEAD: u64 = 3_600_000_000_000;
/// Minimum by which it is ahead while the daemon runs, ns.
const LEAST_AHEAD: u64 = AHEAD / 2;
/// Added to the kept time at a start with a clock that is behind, ns: more handshakes than a daemon ever sends, one
/// nanosecond each.
const RESERVE: u64 = 1_000_000_000;
/// The latest time that a clock can have shown: the year 2262.
const LATEST: u64 = i64::MAX as u64;
/// Bytes of a copy in the file, with its header: a decimal number of at most 19 digits.
const COPY_BYTES: usize = 64;
/// The folder for persistent files on a router without a persistent `/var` (OpenWrt).
const LASTING_FOLDER: &str = "/etc/ropewalk/state";

/// The kept time of a tunnel.
#[derive(Debug, Default)]
pub(crate) struct HandshakeTimes {
    file: Option<(LockedFile, TwoCopies)>,
    /// The first time that handshakes may have, nanoseconds since 1970.
    earliest: u64,
    /// The time in the file.
    kept: u64,
}

/// The file of a tunnel, if there is a folder for it.
pub(crate) fn file(interface: &str, state_directory: Option<PathBuf>) -> Option<PathBuf> {
    let lasting = Some(PathBuf::from(LASTING_FOLDER)).filter(|folder| folder.is_dir());
    Some(lasting.or(state_directory)?.join(format!("{interface}.handshakes")))
}

/// The time that a file keeps, since 1970. A correct clock is behind it by at most the hour by which the file is ahead.
/// `None` if it cannot be read.
#[must_use]
pub(crate) fn kept_time(path: &Path) -> Option<Duration> {
    let kept = read(&mut copies(), &File::open(path).ok()?)?;
    Some(Duration::from_nanos(kept.saturating_sub(AHEAD)))
}

/// The clock, nanoseconds since 1970.
pub(crate) fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |elapsed| u64::try_from(elapsed.as_nanos()).unwrap_or(LATEST))
}

const fn copies() -> TwoCopies {
    TwoCopies::new(0, COPY_BYTES)
}

fn read(copies: &mut TwoCopies, file: &File) -> Option<u64> {
    let text = String::from_utf8(copies.read(file)?).ok()?;
    text.parse().ok().filter(|time| *time <= LATEST)
}

impl HandshakeTimes {
    /// Opens the file, which will belong to `user`. Errors are logged and do not prevent the start: without a file only
    /// the clock decides.
    pub(crate) fn open(path: &Path, user: Option<&User>, now: u64) -> Self {
        Self::try_open(path, user, now).unwrap_or_else(|error| {
            warn!("{}: {error}; after a restart with a clock that is behind, peers refuse handshakes", path.display());
            Self::default()
        })
    }

    fn try_open(path: &Path, user: Option<&User>, now: u64) -> io::Result<Self> {
        let place = Place::new(path, user)?;
        let (mut file, mut copies) = (place.open()?, copies());
        let mut kept = read(&mut copies, &file);
        if kept.is_none() && file.metadata()?.len() > 0 {
            let (new, aside) = place.replace_damaged()?;
            warn!("{} was damaged: it is now {}", path.display(), aside.display());
            (file, copies, kept) = (new, self::copies(), None);
        }
        let earliest = kept.map_or(0, |kept| kept + 1);
        let mut times = Self { file: Some((file, copies)), earliest, kept: kept.unwrap_or(0) };
        times.keep(now.saturating_add(AHEAD).max(earliest.saturating_add(RESERVE)))?;
        Ok(times)
    }

    /// The first time that handshakes may have, nanoseconds since 1970.
    pub(crate) fn earliest(&self) -> u64 {
        self.earliest
    }

    /// Writes a later time if the clock comes close to the kept one. To be called often enough for that.
    pub(crate) fn update(&mut self, now: u64) {
        if now.saturating_add(LEAST_AHEAD) <= self.kept || self.file.is_none() {
            return;
        }
        if let Err(error) = self.keep(now.saturating_add(AHEAD)) {
            warn!("the time of handshakes is not kept any more: {error}");
            self.file = None;
        }
    }

    fn keep(&mut self, time: u64) -> io::Result<()> {
        let time = time.min(LATEST);
        if let Some((file, copies)) = &mut self.file {
            copies.write(file, time.to_string().as_bytes())?;
            file.sync_all()?;
        }
        self.kept = time;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;
    /// 2026-11-27.
    const NOW: u64 = 1_795_000_000_000_000_000;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("ropewalk-times-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn open(&self, now: u64) -> HandshakeTimes {
            HandshakeTimes::try_open(&self.0.join("rw0.handshakes"), None, now).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// The latest time that a daemon sends which runs from `now` to `end`, a handshake each minute, and is killed then.
    fn latest_sent(times: &mut HandshakeTimes, now: u64, end: u64) -> u64 {
        let (mut clock, mut sent) = (now, 0);
        while clock <= end {
            times.update(clock);
            sent = clock.max(times.earliest()).max(sent + 1);
            clock += HOUR / 60;
        }
        sent
    }

    #[test]
    fn after_a_kill_no_time_is_sent_again_however_far_the_clock_is_behind() {
        let folder = Folder::new("behind");
        let mut latest = 0;
        for (start, end) in [
            (NOW, NOW + 3 * HOUR),
            (NOW + 2 * HOUR, NOW + 2 * HOUR),
            (NOW - 400 * 24 * HOUR, NOW - 399 * 24 * HOUR),
            (0, HOUR),
            (NOW + 4 * HOUR, NOW + 9 * HOUR),
            (NOW + 9 * HOUR, NOW + 9 * HOUR),
        ] {
            let mut times = folder.open(start);
            assert!(latest == 0 || times.earliest() > latest, "{start}");
            latest = latest_sent(&mut times, start, end);
        }
        assert!(latest <= NOW + 11 * HOUR, "restarts do not run away from the clock");
    }

    #[test]
    fn restarts_in_a_loop_stay_within_the_hour_and_their_reserves() {
        let folder = Folder::new("loop");
        let last = (0..1000).fold(0, |_, _| folder.open(NOW).earliest());
        assert!(last <= NOW + AHEAD + 1000 * (RESERVE + 1), "{last}");
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_a_time_of_no_clock_is_not_used() {
        let folder = Folder::new("damaged");
        let path = folder.0.join("rw0.handshakes");
        let mut too_late = Vec::new();
        let file = Place::new(&path, None).unwrap().open().unwrap();
        copies().write(&file, u64::MAX.to_string().as_bytes()).unwrap();
        too_late.extend(std::fs::read(&path).unwrap());
        drop(file);
        for bytes in [&b"nonsense"[..], &[0xff; 300], &[0; 128], &too_late] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(kept_time(&path), None);
            assert_eq!(folder.open(NOW).earliest(), 0, "{bytes:?}");
            assert_eq!(std::fs::read(folder.0.join("rw0.handshakes.damaged")).unwrap(), bytes);
            assert_eq!(kept_time(&path), Some(Duration::from_nanos(NOW)));
        }
        // One copy that is torn leaves the other one.
        let mut times = folder.open(NOW);
        times.update(NOW + HOUR);
        drop(times);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[70] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(folder.open(0).earliest() > NOW);
    }

    #[test]
    fn without_a_folder_the_clock_alone_decides() {
        let times = HandshakeTimes::open(Path::new("/no-such-folder/rw0.handshakes"), None, NOW);
        assert_eq!(times.earliest(), 0);
        assert_eq!(kept_time(Path::new("/no-such-folder/rw0.handshakes")), None);
    }
}
