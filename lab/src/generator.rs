//! The generator of a run's traffic: the lab's agent, or well-known programs.

use crate::support::Capabilities;
use crate::{Error, guest_kernel};
use scenario::model::{Application, Experiment, Flow, FlowKind, Route};
use serde::{Deserialize, Serialize};
use units::Span;

/// The generator of a run's traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generator {
    /// The lab's agent, which writes and reads as iperf3 does.
    #[default]
    Agent,
    /// iperf3: its client at the source, its server at the sink.
    Iperf3,
    /// A file by FTP: vsftpd at the source, wget at the sink.
    Ftp,
}

impl Generator {
    /// Checks that its programs are installed.
    pub(crate) fn find(self) -> Result<Self, Error> {
        let programs: &[&str] = match self {
            Self::Agent => &[],
            Self::Iperf3 => &["iperf3", "mptcpize"],
            Self::Ftp => &["vsftpd", "wget", "mptcpize"],
        };
        match programs.iter().find(|name| guest_kernel::on_path(name).is_none()) {
            None => Ok(self),
            Some(name) => Err(Error::NoKernel(format!("this traffic needs {name} (Debian: apt-get install {name})"))),
        }
    }

    /// The first thing that it cannot do on a kernel with these capabilities.
    pub(crate) fn check(self, experiment: &Experiment, capabilities: &Capabilities) -> Result<(), Error> {
        let tunnelled = experiment.flows.iter().filter(|flow| flow.route == Route::Tunnel).count();
        if self == Self::Ftp && tunnelled > 1 {
            return Err(Error::Unsupported {
                key: "flow".into(),
                feature: "room for a second FTP server in the tunnel".into(),
            });
        }
        experiment.flows.iter().try_for_each(|flow| {
            let unsupported = match self {
                Self::Agent => None,
                Self::Iperf3 => unsupported_by_programs(flow).or_else(|| unsupported_by_iperf3(flow)),
                Self::Ftp => unsupported_by_programs(flow).or_else(|| unsupported_by_ftp(flow, capabilities)),
            };
            unsupported.map_or(Ok(()), |(key, feature)| {
                Err(Error::Unsupported { key: format!("flow.{}.{key}", flow.name), feature })
            })
        })
    }

    /// Whether the source listens and the sink connects.
    pub(crate) fn source_listens(self) -> bool {
        self == Self::Ftp
    }

    /// Number of an MPTCP flow's connections that are TCP: FTP's control connection.
    pub(crate) fn plain_connections(self) -> u64 {
        u64::from(self == Self::Ftp)
    }

    /// Its part of the description of a kernel.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Agent => "",
            Self::Iperf3 => ", traffic by iperf3",
            Self::Ftp => ", files by FTP",
        }
    }
}

/// The feature of a flow that iperf3 and FTP do not support: both are greedy TCP.
fn unsupported_by_programs(flow: &Flow) -> Option<(&'static str, String)> {
    let key = match &flow.kind {
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => "kind",
        FlowKind::Tcp { application, .. } => match application {
            Application::Greedy => return None,
            Application::Steady { .. } => "rate",
            Application::Requests(_) => "requests",
            Application::Video(_) => "video",
        },
    };
    Some((key, "such flow by iperf3 or FTP, which only make TCP flows that send as fast as they can".into()))
}

fn unsupported_by_iperf3(flow: &Flow) -> Option<(&'static str, String)> {
    let length = flow.stop?.since(flow.start).as_nanos();
    let is_whole = length.is_multiple_of(Span::from_secs(1).as_nanos());
    (!is_whole).then(|| ("stop", "part of a second for iperf3, which counts whole ones".into()))
}

fn unsupported_by_ftp(flow: &Flow, capabilities: &Capabilities) -> Option<(&'static str, String)> {
    let FlowKind::Tcp { congestion, size, .. } = &flow.kind else { return None };
    if size.is_none() {
        return Some(("size", "endless files: FTP's flows need a size".into()));
    }
    let (name, allowed) = (&congestion.name, capabilities.default_congestion_controls.join(" "));
    let feature = format!("way to give `{name}` to FTP's server: as the default of a namespace only those in");
    let explanation = format!("net.ipv4.tcp_allowed_congestion_control are allowed ({allowed})");
    (!capabilities.may_be_default(congestion)).then(|| ("congestion", format!("{feature} {explanation}")))
}
