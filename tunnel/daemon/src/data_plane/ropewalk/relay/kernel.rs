//! Translation of packets in the kernel: an eBPF program at the egress of the TUN device (`bpf/relay.bpf.c`) looks
//! packets up in a map, and redirects those of relayed connections to the ingress. The daemon sees only their SYNs.
//!
//! Program and map exist as long as the daemon has their descriptors. If the kernel refuses them, the daemon
//! translates.

use aya::maps::{HashMap, MapData};
use aya::programs::tc::qdisc_add_clsact;
use aya::programs::{SchedClassifier, TcAttachType};
use aya::{Ebpf, include_bytes_aligned};
use nix::unistd::{SysconfVar, sysconf};
use std::net::{IpAddr, SocketAddr};
use tracing::{debug, info};
use wire::relay::Addresses;

/// The compiled program.
const OBJECT: &[u8] = include_bytes_aligned!("../../../../bpf/relay.bpf.o");
/// Names in the program.
const PROGRAM: &str = "ropewalk_relay";
const MAP: &str = "translations";
/// Length of `struct flow`.
const FLOW_LEN: usize = 36;

/// The program and its map.
pub(super) struct KernelTranslations {
    map: HashMap<MapData, [u8; FLOW_LEN], [u8; FLOW_LEN]>,
    _program: Ebpf,
}

impl KernelTranslations {
    /// Attaches the program to a device; `None` if the kernel refuses it.
    pub(super) fn attach(device: &str) -> Option<Self> {
        let attached = attach(device);
        match &attached {
            Ok(_) => info!("relayed packets are translated in the kernel"),
            Err(error) => info!("relayed packets are translated by the daemon: {error}"),
        }
        attached.ok()
    }

    /// Redirects packets with the addresses `from` to the ingress, with the addresses `to`. False if the kernel refuses
    /// the entry.
    pub(super) fn insert(&mut self, from: &Addresses, to: &Addresses) -> bool {
        let inserted = self.map.insert(flow(from), flow(to), 0);
        inserted.inspect_err(|error| info!("relayed packets are translated by the daemon from now on: {error}")).is_ok()
    }

    /// Lets packets with the addresses `from` leave by the device again.
    pub(super) fn remove(&mut self, from: &Addresses) {
        if let Err(error) = self.map.remove(&flow(from)) {
            debug!("a translation was not removed: {error}");
        }
    }
}

fn attach(device: &str) -> Result<KernelTranslations, Box<dyn std::error::Error>> {
    let mut ebpf = Ebpf::load(OBJECT)?;
    let program: &mut SchedClassifier = ebpf.program_mut(PROGRAM).ok_or("no program")?.try_into()?;
    program.load()?;
    // Kernels without TCX (before 6.6) need the queueing discipline, which is removed with the device.
    let _ = qdisc_add_clsact(device);
    program.attach(device, TcAttachType::Egress)?;
    if let Err(error) = steer_flows(device) {
        debug!("packets of a flow may be reordered between CPUs: {error}");
    }
    let map = HashMap::try_from(ebpf.take_map(MAP).ok_or("no map")?)?;
    Ok(KernelTranslations { map, _program: ebpf })
}

/// Lets one CPU receive all packets of a flow (receive packet steering, Documentation/networking/scaling.rst).
/// Otherwise a redirected packet would be received by the CPU that sent it. Several CPUs send the packets of one flow,
/// and TCP takes their reordering for loss.
fn steer_flows(device: &str) -> std::io::Result<()> {
    let cpus = sysconf(SysconfVar::_NPROCESSORS_ONLN)?.unwrap_or(1);
    std::fs::write(format!("/sys/class/net/{device}/queues/rx-0/rps_cpus"), cpu_mask(cpus as u32))
}

/// The bitmap of the first `cpus` CPUs: hexadecimal words of 32 bits, the highest first.
fn cpu_mask(cpus: u32) -> String {
    let word = |index: u32| match cpus.saturating_sub(32 * index) {
        bits @ 0..32 => (1_u32 << bits) - 1,
        _ => u32::MAX,
    };
    let words: Vec<String> = (0..cpus.div_ceil(32).max(1)).rev().map(|index| format!("{:x}", word(index))).collect();
    words.join(",")
}

/// `struct flow`.
fn flow(addresses: &Addresses) -> [u8; FLOW_LEN] {
    let octets = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let mut flow = [0; FLOW_LEN];
    flow[..16].copy_from_slice(&octets(addresses.source));
    flow[16..32].copy_from_slice(&octets(addresses.destination));
    flow[32..34].copy_from_slice(&addresses.source.port().to_be_bytes());
    flow[34..].copy_from_slice(&addresses.destination.port().to_be_bytes());
    flow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_the_layout_of_the_program() {
        let addresses = Addresses {
            source: "192.0.2.1:258".parse().expect("an address"),
            destination: "[2001:db8::2]:772".parse().expect("an address"),
        };
        let flow = flow(&addresses);
        assert_eq!(flow[..16], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]);
        assert_eq!(flow[16..], [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 3, 4]);
    }

    #[test]
    fn a_mask_of_cpus_has_words_of_32_bits() {
        assert_eq!([1, 2, 32, 33, 70].map(cpu_mask), ["1", "3", "ffffffff", "1,ffffffff", "3f,ffffffff,ffffffff"]);
    }

    #[test]
    fn the_object_has_the_program_and_the_map() {
        let object = String::from_utf8_lossy(OBJECT);
        assert!(object.contains(PROGRAM) && object.contains(MAP));
    }
}
