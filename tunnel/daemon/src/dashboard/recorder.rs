//! Records a status per second. Keeps one sample per second for an hour and one per minute for a week.

use super::file::{Entry, HistoryFile, SLOT_SECONDS};
use super::ring::{MINUTES, Ring, SECONDS};
use super::sample::Sample;
use super::series::{Counters, MAX_SERIES, SeriesKey, readings};
use crate::status::TunnelStatus;
use std::io;
use std::time::SystemTime;

/// A series and its stored samples.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) key: SeriesKey,
    pub(super) seconds: Ring,
    pub(super) minutes: Ring,
    /// The first minute of this series, counted since 1970.
    since: u64,
    /// The last time at which a status had it, seconds since 1970.
    last_seen_s: u64,
    counters: Option<Counters>,
}

impl Series {
    fn new(key: SeriesKey, since: u64) -> Self {
        let rings = [SECONDS, MINUTES].map(Ring::new);
        let [seconds, minutes] = rings;
        Self { key, seconds, minutes, since, last_seen_s: since * SLOT_SECONDS, counters: None }
    }
}

/// The history of a tunnel.
#[derive(Debug, Default)]
pub struct Recorder {
    pub(super) series: Vec<Series>,
    file: Option<HistoryFile>,
    /// Whether the file's directory is older than `series`.
    is_directory_old: bool,
    /// The latest minute since 1970 that is complete or being recorded.
    minute: u64,
}

/// The time of the wall clock, seconds since 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Recorder {
    /// A recorder that continues the history of a file, or starts without a file.
    #[must_use]
    pub fn new(file: Option<HistoryFile>) -> Self {
        let mut recorder = Self::default();
        if let Some(mut file) = file {
            recorder.load(&mut file);
            recorder.file = Some(file);
        }
        recorder
    }

    fn load(&mut self, file: &mut HistoryFile) {
        self.series = file.directory().into_iter().map(|entry| Series::new(entry.key, entry.since)).collect();
        let mut minutes = file.minutes();
        minutes.sort_by_key(|(minute, _)| *minute);
        for (minute, samples) in minutes {
            let own = self.series.iter_mut().zip(samples).filter(|(series, _)| minute >= series.since);
            own.for_each(|(series, sample)| {
                series.minutes.insert(minute * SLOT_SECONDS, sample);
                series.last_seen_s = if sample.is_present() { minute * SLOT_SECONDS } else { series.last_seen_s };
            });
        }
        let mut seconds = file.seconds();
        seconds.sort_by_key(|(minute, _)| *minute);
        for (minute, samples) in seconds {
            let blocks = samples.chunks(SLOT_SECONDS as usize);
            for (series, block) in self.series.iter_mut().zip(blocks).filter(|(series, _)| minute >= series.since) {
                let times = minute * SLOT_SECONDS..;
                times.zip(block).for_each(|(time_s, sample)| series.seconds.insert(time_s, *sample));
            }
        }
    }

    /// Records a status at a time, seconds since 1970. Returns the samples, and writes the minute before if a new one has
    /// begun.
    ///
    /// # Errors
    /// The file was not written; the history goes on in memory.
    pub fn record(&mut self, time_s: u64, status: &TunnelStatus) -> (Vec<(SeriesKey, Sample)>, io::Result<()>) {
        let minute = time_s / SLOT_SECONDS;
        let written = if minute == self.minute { Ok(()) } else { self.finish_minute() };
        self.minute = minute;
        let mut samples = Vec::new();
        for reading in readings(status) {
            let Some(series) = self.find_or_add(&reading.key, time_s) else { continue };
            let sample = reading.since(series.counters.as_ref());
            series.seconds.insert(time_s, sample);
            (series.counters, series.last_seen_s) = (Some(reading.counters), time_s);
            samples.push((reading.key, sample));
        }
        (samples, written)
    }

    /// The series of a key. A new one replaces the one that disappeared longest ago; `None` if all places belong to
    /// present series.
    fn find_or_add(&mut self, key: &SeriesKey, time_s: u64) -> Option<&mut Series> {
        if let Some(index) = self.series.iter().position(|series| series.key == *key) {
            return Some(&mut self.series[index]);
        }
        let new = Series::new(key.clone(), time_s / SLOT_SECONDS);
        let index = if self.series.len() < MAX_SERIES {
            self.series.push(new);
            self.series.len() - 1
        } else {
            let gone = |series: &&Series| series.last_seen_s + SLOT_SECONDS < time_s;
            let oldest = self.series.iter().filter(gone).min_by_key(|series| series.last_seen_s)?.key.clone();
            let index = self.series.iter().position(|series| series.key == oldest)?;
            self.series[index] = new;
            index
        };
        self.is_directory_old = true;
        Some(&mut self.series[index])
    }

    /// Makes the minute's samples from its seconds, and writes both. Called when the next minute begins, and at the
    /// end.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish_minute(&mut self) -> io::Result<()> {
        let start_s = self.minute * SLOT_SECONDS;
        let times = start_s..start_s + SLOT_SECONDS;
        let seconds: Vec<Vec<Sample>> =
            self.series.iter().map(|series| times.clone().map(|time_s| series.seconds.get(time_s)).collect()).collect();
        let samples: Vec<Sample> = seconds.iter().map(|seconds| Sample::merge(seconds.iter().copied())).collect();
        for (series, sample) in self.series.iter_mut().zip(&samples).filter(|(_, sample)| sample.is_present()) {
            series.minutes.insert(start_s, *sample);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if std::mem::take(&mut self.is_directory_old) {
            let entry = |series: &Series| Entry { key: series.key.clone(), since: series.since };
            file.write_directory(&self.series.iter().map(entry).collect::<Vec<_>>())?;
        }
        if samples.iter().any(Sample::is_present) { file.write_minute(self.minute, &samples, &seconds) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::State;
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    const START: u64 = 1_000_000_020;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ropewalk-history-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    /// Records seconds in which the first path sends 1 Mbit/s.
    fn record(recorder: &mut Recorder, seconds: std::ops::Range<u64>) {
        let mut status = TunnelStatus::example();
        for second in seconds {
            status.uptime_s = 1000.0 + second as f64;
            status.peers[0].paths[0].sent.bytes = second * 125_000;
            recorder.record(START + second, &status).1.unwrap();
        }
    }

    fn first_path(recorder: &Recorder) -> &Series {
        let name = &TunnelStatus::example().peers[0].paths[0].name;
        recorder.series.iter().find(|series| series.key.path.as_ref() == Some(name)).unwrap()
    }

    fn open(path: &std::path::Path) -> Recorder {
        let (file, aside) = HistoryFile::open(path, None).unwrap();
        assert_eq!(aside, None);
        Recorder::new(Some(file))
    }

    #[test]
    fn a_restart_forgets_nothing_and_a_power_cut_the_last_minute_at_most() {
        let path = path("restart");
        let mut recorder = open(&path);
        record(&mut recorder, 0..150);
        // As after a power cut: what `finish_minute` would write is not written.
        drop(recorder);
        let mut recorder = open(&path);
        let rates = |recorder: &Recorder, second: u64| first_path(recorder).seconds.get(START + second).send_bps;
        assert_eq!([1, 50, 99].map(|second| rates(&recorder, second)), [1e6; 3]);
        assert_eq!(rates(&recorder, 149), 0.0, "in the minute that was being recorded");
        assert_eq!(first_path(&recorder).minutes.get(START + 60).state, State::Up);
        record(&mut recorder, 150..160);
        recorder.finish_minute().unwrap();
        drop(recorder);
        assert_eq!(rates(&open(&path), 159), 1e6);
        assert_eq!(fs::metadata(&path).unwrap().len(), HistoryFile::LEN);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_minute_that_is_damaged_is_absent_and_the_others_are_there() {
        let path = path("damaged-minute");
        let mut recorder = open(&path);
        record(&mut recorder, 0..200);
        drop(recorder);
        let file = HistoryFile::open(&path, None).unwrap().0;
        assert_eq!(HistoryFile::open(&path, None).unwrap_err().kind(), io::ErrorKind::WouldBlock, "it is locked");
        let count = file.minutes().len();
        drop(file);
        let bytes = fs::read(&path).unwrap();
        let minute = (START / 60 + 1).to_le_bytes();
        let at = bytes.windows(8).position(|window| window == minute).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0xff], at as u64 + 20).unwrap();
        let recorder = open(&path);
        assert!(!first_path(&recorder).minutes.get(START + 60).is_present());
        assert!(first_path(&recorder).minutes.get(START).is_present());
        drop(recorder);
        assert_eq!(HistoryFile::open(&path, None).unwrap().0.minutes().len(), count - 1);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_is_no_history_is_set_aside_whole() {
        let path = path("foreign");
        fs::write(&path, "a letter").unwrap();
        let (file, aside) = HistoryFile::open(&path, None).unwrap();
        let aside = aside.unwrap();
        assert_eq!(fs::read_to_string(&aside).unwrap(), "a letter");
        assert!(Recorder::new(Some(file)).series.is_empty());
        [aside, path].iter().for_each(|path| fs::remove_file(path).unwrap());
    }

    #[test]
    fn beyond_the_greatest_number_of_series_the_first_are_kept_and_what_is_gone_makes_room() {
        let mut recorder = Recorder::default();
        let mut status = TunnelStatus::example();
        let path = status.peers[0].paths[0].clone();
        let named = |number: usize| crate::status::PathStatus { name: format!("path-{number}"), ..path.clone() };
        status.peers[0].paths = (0..MAX_SERIES + 5).map(named).collect();
        assert_eq!(recorder.record(START, &status).0.len(), MAX_SERIES);
        status.peers[0].paths.truncate(2);
        status.peers[0].paths.push(named(1000));
        assert_eq!(recorder.record(START + 1, &status).0.len(), 5, "the places are of series of this minute");
        let later = recorder.record(START + 200, &status).0;
        assert!(later.iter().any(|(key, _)| key.path.as_deref() == Some("path-1000")));
        assert_eq!(recorder.series.len(), MAX_SERIES);
    }
}
