//! The names in assertions: fields of Linux's `tcp_info`.

use crate::expression::Names;
use crate::host::Host;

/// The names and their current values.
pub(crate) fn names(host: &Host) -> Names {
    let sender = &host.sender;
    let (decision, pipe, counters) = (sender.decision(), sender.pipe(), sender.counters());
    let limited = sender.limited_times(host.instant());
    let int = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Names::from([
        ("tcpi_snd_cwnd", i64::from(decision.cwnd)),
        ("tcpi_snd_ssthresh", i64::from(decision.ssthresh)),
        ("tcpi_ca_state", sender.ca_state() as i64),
        ("tcpi_unacked", i64::from(pipe.packets_out)),
        ("tcpi_sacked", i64::from(pipe.sacked_out)),
        ("tcpi_lost", i64::from(pipe.lost_out)),
        ("tcpi_retrans", i64::from(pipe.retrans_out)),
        ("tcpi_total_retrans", int(counters.retransmitted)),
        ("tcpi_dsack_dups", int(counters.duplicates)),
        ("tcpi_reordering", i64::from(sender.reordering())),
        ("tcpi_rtt", int(sender.srtt().as_micros())),
        ("tcpi_snd_mss", int(host.segments.mss())),
        ("tcpi_notsent_bytes", int(sender.notsent_bytes())),
        ("tcpi_rwnd_limited", int(limited.receive_window.as_micros())),
        ("tcpi_sndbuf_limited", int(limited.send_buffer.as_micros())),
        ("TCP_CA_Open", 0),
        ("TCP_CA_Disorder", 1),
        ("TCP_CA_CWR", 2),
        ("TCP_CA_Recovery", 3),
        ("TCP_CA_Loss", 4),
    ])
}
