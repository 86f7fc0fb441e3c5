//! The command lines of external programs that make traffic, and the files that they need.

use super::{Family, Network};
use crate::Generator;
use crate::protocol::{NetnsCommand, Programs};
use scenario::model::{FlowKind, Route};
use std::net::IpAddr;
use units::{Instant, Span};

/// Limits of iperf3's reporting interval.
const INTERVALS: [Span; 2] = [Span::from_millis(100), Span::from_secs(60)];

impl Network<'_> {
    /// The external programs of flow `k`, which begins at `start`, if the agent does not make its traffic.
    pub(crate) fn programs(&self, k: usize, start: Instant) -> Option<Programs> {
        let generator = self.environment.generator;
        let wrapper = if self.experiment.flows[k].route == Route::Subflows { "mptcpize run " } else { "" };
        let command = |is_source: bool, line: String, file: &str| NetnsCommand {
            netns: self.host(is_source, self.pair_of[k]),
            line: format!("{wrapper}{line}"),
            output: self.environment.file(file),
        };
        let (server, client) = match generator {
            Generator::Agent => return None,
            Generator::Iperf3 => {
                let [server, client] = self.iperf3(k, start);
                let (log, json) = (format!("iperf3-{k}.log"), format!("iperf3-{k}.json"));
                (command(false, server, &log), command(true, client, &json))
            }
            Generator::Ftp => {
                let server = format!("vsftpd {}", self.ftp_file(k, "conf"));
                let (server_log, client_log) = (format!("vsftpd-{k}.log"), format!("wget-{k}.log"));
                (command(true, server, &server_log), command(false, self.wget(k), &client_log))
            }
        };
        Some(Programs { generator, server, client })
    }

    /// The command lines of server and client. iperf3 counts whole seconds: a second that has begun when the run ends counts
    /// as well.
    fn iperf3(&self, k: usize, start: Instant) -> [String; 2] {
        let flow = &self.experiment.flows[k];
        let FlowKind::Tcp { congestion, size, .. } = &flow.kind else { unreachable!("refused by `check`") };
        let end = flow.stop.unwrap_or(Instant::NEVER).min(Instant::ZERO + self.experiment.duration);
        let seconds = end.since(start).as_nanos().div_ceil(Span::from_secs(1).as_nanos()).max(1);
        let length = size.map_or_else(|| format!("--time {seconds}"), |bytes| format!("--bytes {bytes}"));
        let [source, sink] = self.flow_ends(k).map(|end| end.address);
        // Without the option a server of both versions sees IPv4 addresses as IPv6 addresses.
        let version = format!("--version{}", if self.family == Family::V4 { 4 } else { 6 });
        let interval = self.experiment.sample.unwrap_or(Span::from_secs(1)).clamp(INTERVALS[0], INTERVALS[1]);
        let (interval, congestion) = (interval.as_secs_f64(), &congestion.name);
        [
            format!("iperf3 --server --one-off {version} --port {}", sink.port()),
            format!(
                "iperf3 --client {} --port {} {version} --bind {} --cport {} --congestion {congestion} {length} \
                 --interval {interval} --json",
                sink.ip(),
                sink.port(),
                source.ip(),
                source.port()
            ),
        ]
    }

    fn wget(&self, k: usize) -> String {
        let [source, _] = self.flow_ends(k).map(|end| end.address.ip());
        let host = if let IpAddr::V6(address) = source { format!("[{address}]") } else { source.to_string() };
        let options = "--no-config --no-proxy --tries=1 --progress=dot:giga --output-document=/dev/null";
        format!("wget {options} ftp://{host}/data")
    }

    /// The files of FTP's server: a configuration, and a sparse file of the flow's size.
    pub(super) fn files(&self) -> Vec<String> {
        let files_of_flow = |(k, flow): (usize, &scenario::model::Flow)| {
            let FlowKind::Tcp { size: Some(size), .. } = &flow.kind else { return Vec::new() };
            let (conf, folder, port) =
                (self.ftp_file(k, "conf"), self.ftp_file(k, "ftp"), self.flow_ends(k)[0].address.port());
            vec![
                format!("mkdir -p {folder}/empty && truncate -s {size} {folder}/data && chmod 644 {folder}/data"),
                format!(
                    "cat >{conf} <<END\nanonymous_enable=YES\nlocal_enable=NO\nanon_root={folder}\n\
                     secure_chroot_dir={folder}/empty\nrun_as_launching_user=YES\nlisten=NO\n\
                     pasv_min_port={port}\npasv_max_port={port}\nisolate=NO\nisolate_network=NO\nseccomp_sandbox=NO\nEND"
                ),
            ]
        };
        let flows = self.experiment.flows.iter().enumerate();
        flows.filter(|_| self.environment.generator == Generator::Ftp).flat_map(files_of_flow).collect()
    }

    /// A file of vsftpd, in memory if possible: its owner has to be the server's user.
    fn ftp_file(&self, k: usize, extension: &str) -> String {
        format!("{}/vsftpd-{k}.{extension}", self.environment.sockets)
    }
}
