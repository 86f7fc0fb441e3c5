//! Translation of packets that leave by the TUN device, in the daemon: they are read, changed, and written back.

use super::RelayDriver;
use super::translations::Action;
use crate::data_plane::device::{Device, WriteOutcome};
use std::io::IoSlice;
use wire::inner::{Inner, reply, translate};
use wire::relay::Addresses;
use wire::segment::Segmenter;
use wire::virtio::VirtioNetHeader;

/// The outcome for a packet that has left by the device.
pub(in super::super) enum Steered {
    /// It came in again, or was dropped.
    Handled,
    /// It goes through the tunnel.
    Passed,
    /// It goes through the tunnel, unless it can begin a relayed connection.
    InitialSyn(Addresses),
}

impl RelayDriver {
    /// Handles a packet that was read from the device: `bytes` with the device's header.
    pub(in super::super) fn steer(&self, device: &mut Device, bytes: &mut [u8], inner: &Inner) -> Steered {
        if self.options.is_none() {
            return Steered::Passed;
        }
        let packet = &bytes[header_len(device)..];
        let Some(addresses) = translate::tcp_addresses(packet, inner) else {
            return self.steer_error(device, bytes, inner);
        };
        let is_syn = reply::is_initial_syn(packet, inner);
        match self.translations.get(&addresses) {
            Some(Action::Translate(translation)) if translation.is_live || !is_syn => {
                if !(is_syn && translation.drops_syn) {
                    write_translated(device, bytes, &translation.to);
                }
                Steered::Handled
            }
            Some(Action::Hold) => Steered::Handled,
            _ if self.is_internal(inner.source) || self.is_internal(inner.destination) => Steered::Handled,
            None | Some(Action::Translate(_)) if is_syn && !reply::is_authenticated(packet, inner) => {
                Steered::InitialSyn(addresses)
            }
            _ => Steered::Passed,
        }
    }

    /// Passes an ICMP error about a packet that the daemon's socket has sent to that socket.
    fn steer_error(&self, device: &mut Device, bytes: &mut [u8], inner: &Inner) -> Steered {
        let packet = &mut bytes[header_len(device)..];
        let quoted = translate::quoted_tcp_addresses(packet, inner);
        // The table has the translations of the answers to the quoted packet.
        let action = quoted.and_then(|quoted| self.translations.get(&quoted.reversed()));
        match action {
            Some(Action::Translate(translation)) => {
                translate::translate_error(packet, inner, &translation.to, &translation.to.reversed());
                device.write_packet(packet);
                Steered::Handled
            }
            _ if self.is_internal(inner.source) || self.is_internal(inner.destination) => Steered::Handled,
            _ => Steered::Passed,
        }
    }
}

fn header_len(device: &Device) -> usize {
    if device.has_header() { VirtioNetHeader::LEN } else { 0 }
}

/// Writes a TCP packet, `bytes` with the device's header, to the device with other addresses.
pub(super) fn write_translated(device: &mut Device, bytes: &mut [u8], to: &Addresses) {
    let start = header_len(device);
    let header =
        if start > 0 { VirtioNetHeader::parse(bytes).map(|parsed| parsed.0) } else { Ok(VirtioNetHeader::default()) };
    let (Ok(header), Ok(inner)) = (header, Inner::parse(&bytes[start..])) else { return };
    if inner.source.is_ipv4() != to.source.is_ipv4() {
        return;
    }
    translate::translate(&mut bytes[start..], &inner, to, header.checksum.is_some());
    if start == 0 {
        return device.write_packet(bytes);
    }
    if device.write_super_packet(&[IoSlice::new(bytes)]) == WriteOutcome::NeedsSegmentation {
        let mut buffer = vec![0; 1 << 16];
        let Ok(mut segments) = Segmenter::new(header, &bytes[start..]) else { return };
        while let Some(len) = segments.next_into(&mut buffer) {
            device.write_packet(&buffer[..len]);
        }
    }
}

/// Refuses the connection of a held SYN.
pub(super) fn write_reset(device: &mut Device, syn: &[u8]) {
    if let Some(reset) = reply::reset(&syn[header_len(device)..]) {
        device.write_packet(&reset);
    }
}

/// Answers a held SYN with an ICMP error: the server is unreachable.
pub(super) fn write_unreachable(device: &mut Device, syn: &[u8]) {
    let syn = &syn[header_len(device)..];
    if let Ok(inner) = Inner::parse(syn) {
        device.write_packet(&reply::unreachable(syn, inner.destination));
    }
}
