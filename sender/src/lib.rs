//! The congestion-controlled sender of one path, for any transport.
//!
//! [`path`] has [`PathSender`](path::PathSender), which measures a path, paces, validates the congestion window and
//! reports every event to a controller of `ropewalk-control`. [`recovery`] has what it is made of, and what a transport
//! adds: scoreboard, loss detection, the undo of false losses. Nothing here has a clock, a socket or an encoding.
//!
//! # Order of calls
//!
//! A window that does not grow is nearly always a call that is missing here.
//!
//! 1. Once the path can carry packets: [`start`](path::PathSender::start).
//! 2. For each packet, while [`has_room`](path::PathSender::has_room) and once
//!    [`next_send_time`](path::PathSender::next_send_time) has come: [`before_send`](path::PathSender::before_send), then
//!    [`on_sent`](path::PathSender::on_sent), whose snapshot the machine keeps with the packet, then
//!    [`pace`](path::PathSender::pace) if the [decision](path::PathSender::decision) has a pacing rate.
//! 3. When nothing more is sent: [`mark_app_limited`](path::PathSender::mark_app_limited) if the application has no more
//!    data, and in any case [`validate_cwnd`](path::PathSender::validate_cwnd). Controllers do not raise a window that was
//!    not found full there.
//! 4. For each acknowledgement:
//!    1. [`prior_state`](path::PathSender::prior_state), before anything is counted.
//!    2. [`on_delivered`](path::PathSender::on_delivered) for each packet delivered, [`update_rtt`](path::PathSender::update_rtt)
//!       and [`update_min_rtt`](path::PathSender::update_min_rtt) with an RTT sample, and
//!       [`count_lost`](path::PathSender::count_lost) for packets found lost.
//!    3. [`report_progress`](path::PathSender::report_progress), if an episode is in progress or may begin.
//!    4. [`leave_reduction`](path::PathSender::leave_reduction) once all that was sent before the episode is acknowledged or
//!       lost, [`undo_reduction`](path::PathSender::undo_reduction) if its losses were spurious,
//!       [`enter_reduction`](path::PathSender::enter_reduction) for a loss or a mark that begins an episode.
//!    5. [`finish_ack`](path::PathSender::finish_ack), last.
//!    6. [`enter_reduction`](path::PathSender::enter_reduction) again, if the controller
//!       [asks for it](path::PathSender::is_asked_to_reduce).
//! 5. At a retransmission timeout: [`enter_loss`](path::PathSender::enter_loss), and [`leave_loss`](path::PathSender::leave_loss)
//!    once what was outstanding is acknowledged.
//!
//! A sender that numbers packets as QUIC does, in slow start, and after a loss:
//!
//! ```
//! use control::{CaState, Cause, PathInfo, registry};
//! use ropewalk_sender::path::{AckedPackets, ControllerHandle, Outstanding, PathSender};
//! use ropewalk_sender::recovery::SendSnapshot;
//! use std::collections::BTreeMap;
//! use units::{Instant, PathId, RngStream, Span};
//!
//! struct Sender {
//!     path: PathSender,
//!     controller: ControllerHandle,
//!     /// Packets in flight by number, each with its time of sending.
//!     packets: BTreeMap<u64, (Instant, SendSnapshot)>,
//!     next: u64,
//! }
//!
//! impl Sender {
//!     fn outstanding(&self) -> Outstanding {
//!         let in_flight = self.packets.len() as u32;
//!         let snd_una = self.packets.keys().next().copied().unwrap_or(self.next);
//!         Outstanding { in_flight, packets_out: in_flight, sacked: 0, snd_una, snd_nxt: self.next }
//!     }
//!
//!     fn send(&mut self, now: Instant) {
//!         while self.path.has_room(self.packets.len() as u32) && self.path.next_send_time() <= now {
//!             let in_flight = self.packets.len() as u32;
//!             self.path.before_send(now, in_flight, false, &mut self.controller);
//!             let snapshot = self.path.on_sent(now, in_flight > 0, in_flight + 1, 1);
//!             self.packets.insert(self.next, (now, snapshot));
//!             self.next += 1;
//!             if let Some(rate) = self.path.decision().pacing_rate {
//!                 self.path.pace(now, 1200, rate, 1200);
//!             }
//!         }
//!         self.path.validate_cwnd(now, &self.outstanding(), None, &mut self.controller);
//!     }
//!
//!     /// The peer has received all packets in flight but `lost`.
//!     fn acknowledge(&mut self, now: Instant, lost: Option<u64>) {
//!         let prior = self.path.prior_state(self.packets.len() as u32);
//!         let mut acked = AckedPackets { advanced: true, may_raise_cwnd: true, ..AckedPackets::default() };
//!         for (number, (sent, snapshot)) in std::mem::take(&mut self.packets) {
//!             if lost == Some(number) {
//!                 acked.newest_lost = Some(snapshot);
//!                 self.path.count_lost(1);
//!             } else {
//!                 self.path.on_delivered(&mut acked.rate_sample, number, sent, 1, &snapshot);
//!                 acked.pkts_acked += 1;
//!                 acked.rtt = Some(now.since(sent));
//!             }
//!         }
//!         let outstanding = self.outstanding();
//!         if let Some(rtt) = acked.rtt {
//!             self.path.update_rtt(rtt, outstanding.snd_una, outstanding.snd_nxt);
//!             self.path.update_min_rtt(now, rtt);
//!         }
//!         let (path, controller) = (&mut self.path, &mut self.controller);
//!         if lost.is_some() || path.ca_state() != CaState::Open {
//!             path.report_progress(now, &prior, &acked, &outstanding, controller);
//!         }
//!         if path.ca_state() != CaState::Open && outstanding.snd_una >= path.high_seq() {
//!             path.leave_reduction(now, true, controller);
//!         }
//!         if lost.is_some_and(|number| number >= path.high_seq()) {
//!             path.enter_reduction(now, Cause::Loss, false, CaState::Recovery, &outstanding, controller);
//!         }
//!         path.finish_ack(now, &prior, &acked, &outstanding, controller);
//!         if path.is_asked_to_reduce(controller) {
//!             path.enter_reduction(now, Cause::Requested, false, CaState::Cwr, &outstanding, controller);
//!         }
//!     }
//! }
//!
//! let reno = registry::find("reno").expect("built in").controller(&BTreeMap::new())?;
//! let mut sender = Sender {
//!     path: PathSender::new(PathId(0), 10, Span::from_secs(1)),
//!     controller: ControllerHandle { controller: Some(reno), rng: RngStream::named(1, "example") },
//!     packets: BTreeMap::new(),
//!     next: 0,
//! };
//! let mut now = Instant::ZERO;
//! sender.path.start(now, PathInfo { mss: 1200, ..PathInfo::DEFAULT }, &mut sender.controller);
//!
//! let mut windows = Vec::new();
//! for round in 0..8 {
//!     windows.push(sender.path.decision().cwnd);
//!     sender.send(now);
//!     now += Span::from_millis(20);
//!     let lost = (round == 3).then_some(sender.next - 1);
//!     sender.acknowledge(now, lost);
//! }
//! // Slow start doubles the window in each round trip. The loss halves it; from then on it grows by a packet.
//! assert_eq!(windows, [10, 20, 40, 80, 40, 41, 42, 43]);
//! # Ok::<(), control::ParamError>(())
//! ```

pub mod path;
pub mod recovery;
