//! Packet captures: all packets of each host's devices, without payload.

use super::{Network, uplink};
use scenario::model::Route;
use std::path::PathBuf;

/// Snapshot length, bytes: all headers, those inside a tunnel included.
const BYTES: u32 = 128;
/// What dumpcap may hold of packets that it has not written, packets and bytes. By default it drops packets beyond 1000: in virtual
/// time a fifth of those of four paths with 100 Mbit/s.
const HELD: [u32; 2] = [500_000, 100_000_000];

/// A program that captures packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureProgram {
    /// One file for all devices of a host, pcapng.
    Dumpcap,
    /// One file for each device, pcap.
    Tcpdump,
}

impl CaptureProgram {
    /// The first of these programs that is on the path.
    ///
    /// # Errors
    /// No program is installed; the error says how to install one.
    pub(crate) fn find() -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let is_installed = |program: &Self| folders.iter().any(|folder| folder.join(program.name()).is_file());
        let none = "captures need dumpcap or tcpdump (Debian: apt-get install wireshark-common, or tcpdump)";
        [Self::Dumpcap, Self::Tcpdump].into_iter().find(is_installed).ok_or_else(|| none.to_owned())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Dumpcap => "dumpcap",
            Self::Tcpdump => "tcpdump",
        }
    }

    /// The command lines that capture on a host's devices, each with the name of its file.
    fn lines(self, host: &str, devices: &[String]) -> Vec<(String, String)> {
        match self {
            Self::Dumpcap => {
                let options: Vec<String> = devices.iter().map(|device| format!("-i {device} -s {BYTES}")).collect();
                let [packets, bytes] = HELD;
                let line = format!("dumpcap -q -N {packets} -C {bytes} {} -w", options.join(" "));
                vec![(line, format!("{host}.pcapng"))]
            }
            // As another user tcpdump could not write there.
            Self::Tcpdump => {
                let capture = |device: &String| {
                    (format!("tcpdump -Z root -i {device} -s {BYTES} -U -w"), format!("{host}-{device}.pcap"))
                };
                devices.iter().map(capture).collect()
            }
        }
    }
}

impl Network<'_> {
    /// The commands that start the captures, if any, and wait until they run.
    pub(super) fn captures(&self) -> Vec<String> {
        let start = |(netns, line, file): (String, String, String)| {
            let (file, log) = (self.environment.file(&file), self.environment.file(&format!("{file}.log")));
            [
                format!("ip netns exec {netns} {line} {file} >{log} 2>&1 & echo $! >{file}.pid"),
                // The file's first block says what it is; it is there when the devices are open.
                format!("timeout 20 sh -c 'until [ -s {file} ]; do sleep 0.05; done'"),
            ]
        };
        self.capture_commands().into_iter().flat_map(start).collect()
    }

    /// The commands that end the captures, after which their files are complete.
    pub(crate) fn end_captures(&self) -> Vec<String> {
        let end = |(_, _, file): (String, String, String)| {
            let pid = self.environment.file(&format!("{file}.pid"));
            // A zombie process counts as ended.
            let runs = "grep -qs \"^State:.[^ZX]\" /proc/$pid/status";
            format!(
                "pid=$(cat {pid}); rm {pid}; kill -INT $pid; for n in $(seq 200); do {runs} || break; sleep 0.05; done"
            )
        };
        self.capture_commands().into_iter().map(end).collect()
    }

    /// Namespace, command line and file of each capture.
    fn capture_commands(&self) -> Vec<(String, String, String)> {
        let Some(capture_program) = self.environment.capture_program else { return Vec::new() };
        let mut commands = Vec::new();
        for (k, pair) in self.pairs.iter().enumerate() {
            for (is_source, end) in [true, false].into_iter().zip(super::ENDS) {
                let mut devices: Vec<String> = pair.paths.iter().map(|p| uplink(*p)).collect();
                if self.experiment.flows[pair.flow].route == Route::Tunnel {
                    devices.push(super::tunnel::device(end));
                }
                let name = format!("{}{k}", if is_source { 's' } else { 'd' });
                let lines = capture_program.lines(&name, &devices);
                commands.extend(lines.into_iter().map(|(line, file)| (self.host(is_source, k), line, file)));
            }
        }
        commands
    }
}
