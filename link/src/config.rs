//! The configuration of a link's direction: rate or trace, delay, jitter, loss, and the queue with its discipline.
//!
//! Queue disciplines are named and parametrised as in `tc`. All defaults are here.

use std::sync::Arc;
use units::{Instant, Rate, Span};

/// One direction of a link: a queue, a transmitter, a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Transmission rate; `None` for a link that is never the bottleneck.
    pub rate: Option<Rate>,
    /// Delivery opportunities instead of a rate; the trace repeats for ever.
    pub trace: Option<RateTrace>,
    /// Offset in the (repeating) trace at which the run begins; whole milliseconds.
    pub trace_offset: Span,
    /// Grants in which the rate is available; they need a rate.
    pub grants: Option<GrantConfig>,
    /// Propagation delay.
    pub delay: Span,
    /// Random delay, added to the propagation delay.
    pub jitter: Jitter,
    /// Loss on the wire.
    pub loss: LossModel,
    /// Probability that a packet that is not lost arrives twice at the same instant.
    pub duplicate: f64,
    /// Probability that a packet arrives with a flipped bit, so that its receiver's checksum discards it.
    pub corrupt: f64,
    /// Packets that are not delayed, and therefore overtake others.
    pub reorder: Reordering,
    /// Bytes that the transmitter adds to each packet (Ethernet preamble, header and gap: 38).
    pub overhead: u32,
    /// The policer in front of the queue.
    pub policer: Option<PolicerConfig>,
    /// The queue in front of the transmitter.
    pub queue: QueueConfig,
    /// Whether the queue is in the sending host. Its drops are then reported at once to a flow on the path, like those
    /// of a network card. A tunnel's sockets do not report them.
    pub local: bool,
    /// Maximum number of packets in the wire's delay stage (netem's `limit`), or `None`.
    pub wire_limit: Option<u32>,
    /// Slots in which packets leave the wire.
    pub slot: Option<SlotConfig>,
}

/// No rate limit and no impairment, with the default queue of a Linux interface.
impl Default for PipeConfig {
    fn default() -> Self {
        Self {
            rate: None,
            trace: None,
            trace_offset: Span::ZERO,
            grants: None,
            delay: Span::ZERO,
            jitter: Jitter::default(),
            loss: LossModel::None,
            duplicate: 0.0,
            corrupt: 0.0,
            reorder: Reordering::default(),
            overhead: 0,
            policer: None,
            queue: QueueConfig::default(),
            local: false,
            wire_limit: None,
            slot: None,
        }
    }
}

impl PipeConfig {
    /// The rate that the direction sustains for the first `span` of a run: its rate, or its trace's mean in that time,
    /// limited by its policer's rate. `None` without any of them.
    #[must_use]
    pub fn sustained_rate(&self, span: Span) -> Option<Rate> {
        let begin = Instant::ZERO + self.trace_offset;
        let carried = |trace: &RateTrace| trace.bytes_until(begin + span) - trace.bytes_until(begin);
        let trace = self.trace.as_ref().map(|trace| Rate::of(carried(trace), span));
        let policer = self.policer.map(|policer| policer.rate);
        [self.rate, trace, policer].into_iter().flatten().min()
    }
}

/// Random delay of a wire, drawn for each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// The unit of the distribution.
    pub span: Span,
    /// The distribution.
    pub distribution: JitterDistribution,
    /// Weight of the previous packet's draw in the next one, 0 to 1 (netem's correlation, which narrows the
    /// distribution).
    pub correlation: f64,
    /// Whether a packet with less delay overtakes earlier packets, as in netem without a rate.
    pub reorders: bool,
}

/// Uniform from zero to the span, without reordering.
impl From<Span> for Jitter {
    fn from(span: Span) -> Self {
        Self { span, ..Self::default() }
    }
}

impl Jitter {
    /// The largest delay that the jitter adds.
    #[must_use]
    pub fn max(&self) -> Span {
        match self.distribution {
            JitterDistribution::Added | JitterDistribution::Uniform => self.span,
            JitterDistribution::Normal | JitterDistribution::Pareto | JitterDistribution::ParetoNormal => self.span * 4,
        }
    }
}

/// The distribution of a [`Jitter`], in units of its span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform from 0 to 1.
    #[default]
    Added,
    /// Uniform from -1 to 1, as in netem without a table.
    Uniform,
    /// Normal with standard deviation 1 (netem's `normal`).
    Normal,
    /// Pareto distribution: most packets are early, and few are late by up to 4 (netem's `pareto`).
    Pareto,
    /// A quarter normal and three quarters Pareto (netem's `paretonormal`).
    ParetoNormal,
}

/// Packets that skip the delay, as in netem's `reorder SHARE CORRELATION gap GAP`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet skips the delay, if the gap allows it.
    pub share: f64,
    /// Weight of the previous draw in the next one, 0 to 1. It narrows the distribution of the draws, so that with a
    /// `share` below one half fewer packets skip the delay than `share` says.
    pub correlation: f64,
    /// Of this many packets in a row, at most one skips the delay; at least 1.
    pub gap: u32,
}

impl Default for Reordering {
    fn default() -> Self {
        Self { share: 0.0, correlation: 0.0, gap: 1 }
    }
}

/// Independent draws, with a gap of 1.
impl From<f64> for Reordering {
    fn from(share: f64) -> Self {
        Self { share, ..Self::default() }
    }
}

/// Slots in which packets leave the wire, as in netem's `slot MIN MAX packets PACKETS bytes BYTES`. A slot carries a
/// limited number of packets and bytes. The next one opens after a time that is uniform between `min` and `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotConfig {
    /// Minimum time from the end of a slot to the next one.
    pub min: Span,
    /// Maximum time from the end of a slot to the next one; at least `min`.
    pub max: Span,
    /// Maximum number of packets per slot; at least 1.
    pub packets: Option<u32>,
    /// Bytes after which a slot ends; the packet that reaches them is part of it. At least 1.
    pub bytes: Option<u64>,
}

/// A token-bucket policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// Rate at which tokens are added (RFC 2697's committed information rate).
    pub rate: Rate,
    /// Size of the bucket, bytes (RFC 2697's committed burst size). It is full at first.
    pub burst: u64,
}

/// Grants of a cellular uplink (3GPP TS 36.321, sections 5.4.4 and 5.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantConfig {
    /// Time between two grants, which come at multiples of it; above zero. A grant carries as much as the rate does in
    /// this time.
    pub period: Span,
    /// Time from the arrival of a packet at an idle device until a grant can carry it.
    pub request: Span,
}

/// A trace of delivery opportunities in mahimahi's format: at each instant, one packet of
/// [`OPPORTUNITY_BYTES`](Self::OPPORTUNITY_BYTES) bytes may leave.
#[derive(Clone, Debug, PartialEq)]
pub struct RateTrace {
    /// Milliseconds since the trace's beginning, ascending, repeats allowed.
    pub opportunities: Arc<[u64]>,
    /// The period after which the trace repeats, milliseconds.
    pub period_ms: u64,
}

impl RateTrace {
    /// Bytes that one opportunity carries.
    pub const OPPORTUNITY_BYTES: u64 = 1500;

    /// The longest period, milliseconds: a year.
    pub const MAX_PERIOD_MS: u64 = 366 * 86_400 * 1000;

    /// Whether a link can follow the trace: its period is at most a year, and its mean rate at least 1 bit/s.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        (1..=Self::MAX_PERIOD_MS).contains(&self.period_ms) && self.mean_rate() >= Rate(1)
    }

    /// The mean rate over one period.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        Rate::of(self.opportunities.len() as u64 * Self::OPPORTUNITY_BYTES, Span::from_millis(self.period_ms))
    }

    /// Bytes that the opportunities after time zero and until `end` can carry, including repetitions.
    #[must_use]
    pub fn bytes_until(&self, end: Instant) -> u64 {
        let count = |millis: u64| self.opportunities.partition_point(|opportunity| *opportunity <= millis) as u64;
        let (repetition, offset_ms) = (end.as_millis() / self.period_ms, end.as_millis() % self.period_ms);
        let opportunities = repetition * self.opportunities.len() as u64 + count(offset_ms) - count(0);
        opportunities * Self::OPPORTUNITY_BYTES
    }
}

/// Loss model of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossModel {
    /// No loss.
    #[default]
    None,
    /// Each packet is lost with this probability.
    Random(f64),
    /// Gilbert-Elliott: a good and a bad state; each packet first changes the state.
    GilbertElliott {
        /// Probability of going from good to bad.
        to_bad: f64,
        /// Probability of going from bad to good.
        to_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
        /// Loss probability in the good state.
        loss_good: f64,
    },
}

impl LossModel {
    /// The fraction of packets lost in the long run, 0 to 1; for Gilbert-Elliott in the stationary distribution of its
    /// states.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Random(probability) => probability,
            // The chain starts in the good state and stays there.
            Self::GilbertElliott { to_bad: 0.0, loss_good, .. } => loss_good,
            Self::GilbertElliott { to_bad, to_good, loss_bad, loss_good } => {
                (to_bad * loss_bad + to_good * loss_good) / (to_bad + to_good)
            }
        }
    }
}

/// A queue: its limit and its discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// The length at which the queue is full.
    pub limit: QueueLimit,
    /// The queueing discipline.
    pub discipline: QueueDiscipline,
    /// Whether ECN-capable packets are marked when the discipline would drop them early.
    pub ecn: bool,
}

impl QueueConfig {
    /// A queue with this discipline and `tc`'s defaults.
    #[must_use]
    pub const fn new(discipline: QueueDiscipline) -> Self {
        Self { limit: discipline.default_limit(), discipline, ecn: discipline.default_ecn() }
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::new(QueueDiscipline::DropTail)
    }
}

/// The length at which a queue is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// Packets.
    Packets(u64),
    /// Bytes, including link overhead.
    Bytes(u64),
    /// Transmission time of the queue at the link's current rate.
    Time(Span),
}

/// Queue disciplines, named and parametrised as in `tc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueDiscipline {
    /// First in, first out; arriving packets are dropped while the queue is full.
    DropTail,
    /// First in, first out; packets at the head are dropped while the queue is full (`pfifo_head_drop`).
    DropHead,
    /// CoDel (RFC 8289).
    CoDel(CoDelConfig),
    /// Random early detection (Floyd and Jacobson 1993).
    Red(RedConfig),
    /// PIE (RFC 8033).
    Pie(PieConfig),
    /// DualPI2 (RFC 9332).
    DualPi2(DualPi2Config),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelConfig),
    /// Common Applications Kept Enhanced (Høiland-Jørgensen, Täht, Morton 2018): flow isolation and COBALT.
    Cake(CakeConfig),
}

impl QueueDiscipline {
    /// The default limit in `tc`: the discipline's, or an interface's `txqueuelen`. CAKE limits memory, at least to
    /// this.
    #[must_use]
    pub const fn default_limit(&self) -> QueueLimit {
        match self {
            Self::DualPi2(_) => QueueLimit::Packets(10_000),
            Self::FqCodel(_) => QueueLimit::Packets(10_240),
            Self::Cake(_) => QueueLimit::Bytes(4 << 20),
            _ => QueueLimit::Packets(1000),
        }
    }

    /// Whether the discipline marks by default in `tc`.
    #[must_use]
    pub const fn default_ecn(&self) -> bool {
        matches!(self, Self::DualPi2(_) | Self::FqCodel(_) | Self::Cake(_))
    }
}

/// Parameters of CoDel; defaults of RFC 8289, section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Acceptable standing delay.
    pub target: Span,
    /// Time in which the delay must fall to `target` at least once.
    pub interval: Span,
    /// Mark every ECN-capable packet that waited for longer than this.
    pub ce_threshold: Option<Span>,
}

impl CoDelConfig {
    /// RFC 8289's `TARGET` and `INTERVAL`.
    pub const DEFAULT: Self =
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), ce_threshold: None };
}

impl Default for CoDelConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// No early drop below this average, bytes.
    pub min: u64,
    /// Always drop or mark above this average, bytes.
    pub max: u64,
    /// Drop probability at `max`.
    pub probability: f64,
    /// Weight of the newest sample in the average.
    pub weight: f64,
    /// Whether ECN-capable packets are dropped above `max` instead of marked (`harddrop` of `tc-red`).
    pub hard_drop: bool,
}

impl RedConfig {
    /// The probability of `tc-red`.
    pub const PROBABILITY: f64 = 0.02;
    /// The weight of Floyd and Jacobson 1993.
    pub const WEIGHT: f64 = 0.002;
}

/// Parameters of PIE; defaults of RFC 8033, section 4.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// Target of the queueing delay.
    pub target: Span,
    /// Time between two updates of the drop probability.
    pub tupdate: Span,
    /// Weight of the distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the change since the last update, 1/s.
    pub beta: f64,
}

impl Default for PieConfig {
    fn default() -> Self {
        Self { target: Span::from_millis(15), tupdate: Span::from_millis(15), alpha: 0.125, beta: 1.25 }
    }
}

/// Parameters of DualPI2. The defaults are those of Linux 6.17 (`sch_dualpi2`), which are RFC 9332's (Appendix A.1)
/// except for the scheduler and the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// Target of the Classic queue's delay.
    pub target: Span,
    /// Time between two updates of the base probability.
    pub tupdate: Span,
    /// Weight of the distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the change since the last update, 1/s.
    pub beta: f64,
    /// Factor k from the base probability to the marking probability of the L4S queue.
    pub coupling_factor: f64,
    /// Delay of the L4S queue above which each of its packets is marked.
    pub step_thresh: Span,
    /// Share of the rate that the Classic queue gets in competition with a full L4S queue, 0 to 1.
    pub classic_protection: f64,
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            tupdate: Span::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling_factor: 2.0,
            step_thresh: Span::from_millis(1),
            classic_protection: 0.1,
        }
    }
}

/// Parameters of FQ-CoDel; defaults of RFC 8290, section 5.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodelConfig {
    /// Number of queues to which flows are hashed.
    pub flows: u32,
    /// Bytes that a flow may send per round.
    pub quantum: u32,
    /// CoDel of each queue.
    pub codel: CoDelConfig,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self { flows: 1024, quantum: 1514, codel: CoDelConfig::DEFAULT }
    }
}

/// Parameters of CAKE; default of `tc-cake`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CakeConfig {
    /// The RTT for which the queue is tuned.
    pub rtt: Span,
}

impl Default for CakeConfig {
    fn default() -> Self {
        Self { rtt: Span::from_millis(100) }
    }
}
