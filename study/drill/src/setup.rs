//! The configuration that results from a script's sysctls, socket options and handshake.

use crate::error::ScriptError;
use crate::packet::{Packet, TcpOptions};
use crate::parse::{Action, Script};
use crate::run::Options;
use crate::settings::Settings;
use control::{LinuxRelease, registry};
use std::collections::BTreeMap;
use transport::tcp::receiver::ReceiverConfig;
use transport::tcp::sender::{LossRecovery, SenderConfig};
use units::Span;

/// Bytes of IPv4's and TCP's headers, and of the timestamps option.
const HEADERS: u64 = 40;
const TIMESTAMPS: u64 = 12;
/// The MSS of a peer that announces none (RFC 9293 section 3.7.1), and the largest MSS over Ethernet.
const DEFAULT_MSS: u64 = 536;
const MAX_MSS: u64 = 1460;
/// Time by which a packet may be early or late, microseconds, if the script has no `--tolerance_usecs`.
const TOLERANCE: u64 = 4000;

/// The setup of a run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    /// Congestion control, if the script names it.
    pub congestion: Option<(usize, String)>,
    pub mss: u64,
    /// Shift of the windows that the peer offers.
    pub window_shift: u32,
    /// Whether the script connects, instead of accepting a connection.
    pub connects: bool,
    /// Microseconds.
    pub tolerance: u64,
    /// Settings without effect, with their lines.
    pub ignored: Vec<(usize, String)>,
}

/// Reads the setup of a script, on the host of the options.
pub(crate) fn setup(script: &Script, options: &Options) -> Result<Setup, ScriptError> {
    let settings = Settings::read(script)?;
    let (peer, own) = handshake(script)?;
    Ok(configure(&settings, [peer, own], tolerance(script)?, options))
}

/// The SYNs of the peer and of our host, which are both in the script.
fn handshake(script: &Script) -> Result<(&Packet, &Packet), ScriptError> {
    let (mut peer, mut own) = (None, None);
    for event in &script.events {
        match &event.action {
            Action::Inject(packet) if packet.has('S') => peer = peer.or(Some(packet)),
            Action::Expect(packet) if packet.has('S') => own = own.or(Some(packet)),
            _ => {}
        }
    }
    peer.zip(own).ok_or_else(|| {
        let line = script.events.last().map_or(1, |event| event.line);
        ScriptError::new(line, "the handshake is missing", "a script has the SYN of both ends, `< S` and `> S.`")
    })
}

fn tolerance(script: &Script) -> Result<u64, ScriptError> {
    let mut tolerance = TOLERANCE;
    for (line, option) in &script.options {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "--tolerance_usecs" => {
                let micros = value.trim().parse().ok().filter(|micros| *micros <= 10_000_000);
                tolerance = micros.ok_or_else(|| {
                    ScriptError::new(*line, format!("`{value}` is not a number of microseconds"), "for example 4000")
                })?;
            }
            "--ip_version" | "--local_ip" | "--remote_ip" | "--gateway_ip" | "--netmask_ip" | "--bind_port" => {}
            other => {
                let message = format!("the option `{other}` is not supported");
                return Err(ScriptError::new(*line, message, "`--tolerance_usecs=N` and addresses are supported"));
            }
        }
    }
    Ok(tolerance)
}

fn configure(settings: &Settings, [peer, own]: [&Packet; 2], tolerance: u64, options: &Options) -> Setup {
    let empty = TcpOptions::default();
    let [peer_options, own_options] = [peer, own].map(|packet| packet.options.as_ref().unwrap_or(&empty));
    let both = |has: fn(&TcpOptions) -> bool| has(peer_options) && (own_options.any || has(own_options));
    let timestamps = both(|options| options.timestamps.is_some());
    let sack = both(|options| options.sack_ok);
    let scaled = both(|options| options.window_scale.is_some());
    let mss = peer_options.mss.unwrap_or(DEFAULT_MSS).clamp(88, MAX_MSS) - if timestamps { TIMESTAMPS } else { 0 };
    let ecn = peer.has('E') && own.has('E');
    let Options { tick, release, .. } = *options;
    Setup {
        sender: SenderConfig { release, ..sender_config(settings, mss, timestamps, sack, ecn, tick) },
        receiver: ReceiverConfig { release, ..receiver_config(settings, mss, timestamps, sack, tick) },
        congestion: settings.congestion.clone(),
        mss,
        window_shift: if scaled { peer_options.window_scale.unwrap_or(0) as u32 } else { 0 },
        connects: peer.has('.'),
        tolerance,
        ignored: settings.ignored.clone(),
    }
}

fn sender_config(settings: &Settings, mss: u64, timestamps: bool, sack: bool, ecn: bool, tick: Span) -> SenderConfig {
    SenderConfig {
        release: LinuxRelease::V6_1,
        mss: mss as u32,
        packet_bytes: (mss + HEADERS + if timestamps { TIMESTAMPS } else { 0 }) as u32,
        max_header: SenderConfig::MAX_HEADER,
        initial_window: 10,
        timestamps,
        sack,
        ecn,
        accurate_ecn: false,
        pacing: settings.pacing,
        tso: true,
        small_queues: true,
        offload: true,
        send_buffer: settings.wmem[1],
        initial_send_buffer: settings.wmem[0],
        notsent_lowat: settings.notsent_lowat,
        slow_start_after_idle: settings.slow_start_after_idle,
        early_retrans: settings.early_retrans,
        reordering: settings.reordering,
        max_reordering: 300,
        recovery: LossRecovery::Rack,
        handshake: true,
        initial_rto: Span::from_secs(1),
        window_clamp: u32::MAX,
        tick,
    }
}

fn receiver_config(settings: &Settings, mss: u64, timestamps: bool, sack: bool, tick: Span) -> ReceiverConfig {
    ReceiverConfig {
        mss: mss as u32,
        option_bytes: 0,
        timestamps,
        sack,
        quick_ack: false,
        gro: 1,
        buffer: settings.rmem,
        release: LinuxRelease::V6_1,
        ecn: control::Ecn::Classic,
        tick,
    }
}

/// A controller by its name. `line` is the line of the script that names it.
pub(crate) fn controller(line: usize, name: &str) -> Result<Box<dyn control::Controller>, ScriptError> {
    let fault = |message: String| ScriptError::new(line, message, "`ropewalk list algorithms` lists the names");
    let entry = registry::find(name).ok_or_else(|| fault(format!("there is no congestion control `{name}`")))?;
    entry.controller(&BTreeMap::new()).map_err(|error| fault(format!("congestion control `{name}`: {error}")))
}
