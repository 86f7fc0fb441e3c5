//! The catalogue of programs.

use std::ffi::OsStr;

/// A congestion control as an eBPF program.
#[derive(Debug)]
pub struct Program {
    /// Name of the algorithm in Ropewalk's registry; `NAME-PATH` with a path controller other than Reno.
    pub name: &'static str,
    /// Name in the kernel, as in `net.ipv4.tcp_available_congestion_control`: never one of the kernel's own.
    pub kernel_name: &'static str,
    /// Whether it couples the subflows of an MPTCP connection.
    pub coupled: bool,
    /// Whether only processes with CAP_NET_ADMIN may choose it: Linux restricts algorithms that may be more aggressive
    /// than Reno and CUBIC. [`Audience::Everybody`](crate::Audience::Everybody) lifts the restriction. Coupled programs
    /// are not restricted.
    pub restricted: bool,
    /// The ELF object, built by clang.
    pub(crate) object: &'static [u8],
}

impl Program {
    /// Whether a `struct_ops` map of this name is a registration of it. The name is the program's, followed by an
    /// underscore for kernels with the hook `cwnd_event_tx_start`.
    #[must_use]
    pub fn has_map(&self, name: &OsStr) -> bool {
        name.to_str().is_some_and(|name| name.strip_suffix('_').unwrap_or(name) == self.kernel_name)
    }
}

/// A program whose object is `bpf/objects/FILE.o`.
macro_rules! programs {
    ($($name:literal, $kernel_name:literal, $coupled:literal, $restricted:literal;)*) => {
        &[$(Program {
            name: $name,
            kernel_name: concat!("rw_", $kernel_name),
            coupled: $coupled,
            restricted: $restricted,
            object: include_bytes!(concat!("../bpf/objects/", $kernel_name, ".o")),
        }),*]
    };
}

/// All programs, coupled ones first.
pub const PROGRAMS: &[Program] = programs! {
    "lia", "lia", true, false;
    "olia", "olia", true, false;
    "balia", "balia", true, false;
    "wvegas", "wvegas", true, false;
    "coupled-bbr", "coupled_bbr", true, false;
    "discern", "discern", true, false;
    "lia-bbr", "lia_bbr", true, false;
    "olia-bbr", "olia_bbr", true, false;
    "balia-bbr", "balia_bbr", true, false;
    "wvegas-bbr", "wvegas_bbr", true, false;
    "bbr", "bbr", false, true;
    "bbr3", "bbr3", false, true;
    "bic", "bic", false, true;
    "dctcp", "dctcp", false, true;
    "highspeed", "highspeed", false, true;
    "htcp", "htcp", false, true;
    "hybla", "hybla", false, true;
    "illinois", "illinois", false, true;
    "lp", "lp", false, false;
    "scalable", "scalable", false, true;
    "vegas", "vegas", false, false;
    "veno", "veno", false, true;
    "westwood", "westwood", false, true;
    "yeah", "yeah", false, true;
};

/// The program with this name in the registry or in the kernel.
#[must_use]
pub fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name || program.kernel_name == name)
}
