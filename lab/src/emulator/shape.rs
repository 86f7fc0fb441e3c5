//! The shape of a link in words: `rate=100mbit delay=10ms jitter=8ms loss=0.5% queue=60ms mtu=1400`.

use link::{
    CoDelConfig, Jitter, JitterDistribution, LossModel, Pipe, PipeConfig, PolicerConfig, QueueConfig, QueueDiscipline,
    QueueLimit, RedConfig, Reordering, SlotConfig,
};
use parse::{BitRate, Percent, Quantity, QueueSize, Size, Time};
use std::fmt;
use std::str::FromStr;
use units::{Instant, Span};

/// Bytes of an Ethernet header, which `tc` counts too, so that both give a link the same rate.
const ETHERNET: u32 = 14;
/// The default queue limit.
const QUEUE: Span = Span::from_millis(50);

/// One direction of a link. The defaults are no rate limit, no delay, jitter, loss or other impairment, a queue of 50 ms,
/// and no limit of the packet's size.
///
/// The rate counts a packet's Ethernet header (`overhead=14b` by default). Jitter keeps the order. `police=RATE:BURST` drops
/// what exceeds it, before the queue. The queue is drop-tail, or RED with `red=MIN:MAX:PROBABILITY:WEIGHT` (bytes, bytes,
/// numbers), or CoDel with `codel=TARGET:INTERVAL`, which marks ECN-capable packets. Its limit is a time, bytes or packets. A
/// packet larger than `mtu` is dropped silently.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub(crate) pipe: PipeConfig,
    pub(crate) mtu: Option<u32>,
    words: String,
}

impl Shape {
    /// A link without limits or impairments, but for the default queue.
    #[must_use]
    pub fn none() -> Self {
        let queue = QueueConfig { limit: QueueLimit::Time(QUEUE), ..QueueConfig::default() };
        let pipe = PipeConfig { overhead: ETHERNET, queue, ..PipeConfig::default() };
        Self { pipe, mtu: None, words: String::new() }
    }

    /// Whether the token bucket filter of `tc` can do all of it.
    pub(crate) fn is_rate_only(&self) -> bool {
        let Self { pipe, mtu, .. } = self;
        let no_delay_or_loss =
            (pipe.delay, pipe.jitter.span) == (Span::ZERO, Span::ZERO) && pipe.loss == LossModel::None;
        no_delay_or_loss
            && (pipe.duplicate, pipe.corrupt, pipe.reorder.share) == (0.0, 0.0, 0.0)
            && pipe.slot.is_none()
            && mtu.is_none()
            && pipe.policer.is_none()
            && pipe.overhead == ETHERNET
            && pipe.queue.discipline == QueueDiscipline::DropTail
            && !matches!(pipe.queue.limit, QueueLimit::Packets(_))
    }

    fn set(&mut self, word: &str) -> Result<(), String> {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not `key=value`"))?;
        let pipe = &mut self.pipe;
        match key {
            "rate" => pipe.rate = Some(BitRate::parse(value)?.0),
            "delay" => pipe.delay = Time::parse(value)?.0,
            "jitter" => pipe.jitter = jitter(value)?,
            "loss" => pipe.loss = loss(value)?,
            "duplicate" => pipe.duplicate = Percent::parse(value)?.0,
            "corrupt" => pipe.corrupt = Percent::parse(value)?.0,
            "reorder" => pipe.reorder = reorder(value)?,
            "slot" => pipe.slot = Some(slot(value)?),
            "police" => pipe.policer = Some(policer(value)?),
            "queue" => pipe.queue.limit = limit(value)?,
            "red" => pipe.queue.discipline = QueueDiscipline::Red(red(value)?),
            "codel" => {
                pipe.queue.discipline = QueueDiscipline::CoDel(codel(value)?);
                pipe.queue.ecn = true;
            }
            "overhead" => pipe.overhead = bytes(value)?,
            "mtu" => self.mtu = Some(bytes(value)?),
            _ => {
                let known = "rate, delay, jitter, loss, duplicate, corrupt, reorder, slot, police, queue, red, codel, \
                             overhead, mtu";
                return Err(format!("a link has no `{key}`\nit has {known}"));
            }
        }
        Ok(())
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        let mut shape = Self { words: words.to_owned(), ..Self::none() };
        words.split_whitespace().try_for_each(|word| shape.set(word)).map(|()| shape)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// A change of a link that carries packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    Up(bool),
    Rate(units::Rate),
    Delay(Span),
    Loss(LossModel),
    Mtu(u32),
}

impl FromStr for Change {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.split_once('=') {
            None if word == "up" => Ok(Self::Up(true)),
            None if word == "down" => Ok(Self::Up(false)),
            Some(("rate", value)) => BitRate::parse(value).map(|rate| Self::Rate(rate.0)),
            Some(("delay", value)) => Time::parse(value).map(|time| Self::Delay(time.0)),
            Some(("loss", value)) => loss(value).map(Self::Loss),
            Some(("mtu", value)) => bytes(value).map(Self::Mtu),
            _ => Err(format!("`{word}` is not a change\nchanges are up, down, rate=, delay=, loss=, mtu=")),
        }
    }
}

impl Change {
    /// Applies the change to a pipe and its MTU.
    pub(super) fn apply<P: link::Packet>(self, now: Instant, pipe: &mut Pipe<P>, mtu: &mut Option<u32>) {
        match self {
            Self::Up(up) => pipe.set_up(now, up),
            Self::Rate(rate) => pipe.set_rate(now, rate),
            Self::Delay(delay) => pipe.set_delay(now, delay),
            Self::Loss(loss) => pipe.set_loss(now, loss),
            Self::Mtu(bytes) => *mtu = Some(bytes),
        }
    }
}

/// `8ms`, or `8ms:normal:0.25:reorder`: span, distribution, correlation, and whether packets overtake others.
fn jitter(value: &str) -> Result<Jitter, String> {
    let mut words = value.split(':');
    let jitter = Jitter::from(Time::parse(words.next().unwrap_or_default())?.0);
    let Some(name) = words.next() else { return Ok(jitter) };
    let named = |(_, known): &&(JitterDistribution, &str)| *known == name;
    let distribution = DISTRIBUTIONS.iter().find(named).map(|(distribution, _)| *distribution);
    let correlation = words.next().and_then(|share| share.parse().ok()).filter(|share| (0.0..=1.0).contains(share));
    match (distribution, correlation, words.next(), words.next()) {
        (Some(distribution), Some(correlation), order @ (None | Some("reorder")), None) => {
            Ok(Jitter { distribution, correlation, reorders: order.is_some(), ..jitter })
        }
        _ => Err(format!(
            "`{value}`: jitter is SPAN, or SPAN:DISTRIBUTION:CORRELATION[:reorder], `8ms:normal:0.25:reorder`"
        )),
    }
}

/// `25%`, or `25%:0.5:5`: share, correlation and gap.
fn reorder(value: &str) -> Result<Reordering, String> {
    let words: Vec<&str> = value.split(':').collect();
    let share = Percent::parse(words[0])?.0;
    let rest = words[1..].iter().map(|word| word.parse::<f64>()).collect::<Result<Vec<_>, _>>();
    match rest.as_deref() {
        Ok([]) => Ok(share.into()),
        Ok([correlation, gap]) if (0.0..=1.0).contains(correlation) && (1.0..=f64::from(u32::MAX)).contains(gap) => {
            Ok(Reordering { share, correlation: *correlation, gap: *gap as u32 })
        }
        _ => Err(format!("`{value}`: reorder is SHARE, or SHARE:CORRELATION:GAP, `25%:0.5:5`")),
    }
}

/// `800us:1ms:32:0`: least and greatest time to the next slot, its packets and its bytes, 0 for no limit of one of the two.
fn slot(value: &str) -> Result<SlotConfig, String> {
    let wrong = || format!("`{value}`: slot is MIN:MAX:PACKETS:BYTES, one of the latter two above 0, `800us:1ms:32:0`");
    let [min, max, packets, bytes] = value.split(':').collect::<Vec<_>>().try_into().map_err(|_| wrong())?;
    let packets = packets.parse().map_err(|_| wrong())?;
    let bytes = bytes.parse().map_err(|_| wrong())?;
    let slot = SlotConfig {
        min: Time::parse(min)?.0,
        max: Time::parse(max)?.0,
        packets: Some(packets).filter(|most| *most > 0),
        bytes: Some(bytes).filter(|most| *most > 0),
    };
    let is_limited = slot.packets.is_some() || slot.bytes.is_some();
    if is_limited && slot.min <= slot.max { Ok(slot) } else { Err(wrong()) }
}

/// The distributions of jitter, by netem's names.
pub(crate) const DISTRIBUTIONS: [(JitterDistribution, &str); 5] = [
    (JitterDistribution::Added, "added"),
    (JitterDistribution::Uniform, "uniform"),
    (JitterDistribution::Normal, "normal"),
    (JitterDistribution::Pareto, "pareto"),
    (JitterDistribution::ParetoNormal, "paretonormal"),
];

fn limit(value: &str) -> Result<QueueLimit, String> {
    match QueueSize::parse(value)? {
        QueueSize::Packets(packets) => Ok(QueueLimit::Packets(packets)),
        QueueSize::Bytes(bytes) => Ok(QueueLimit::Bytes(bytes)),
        QueueSize::Time(span) => Ok(QueueLimit::Time(span)),
        QueueSize::Bdp(_) => Err(format!("`{value}`: a link has no path\nwrite a time, bytes or packets")),
    }
}

fn policer(value: &str) -> Result<PolicerConfig, String> {
    let (rate, burst) =
        value.split_once(':').ok_or_else(|| format!("`{value}`: a policer is RATE:BURST, `10mbit:30kb`"))?;
    Ok(PolicerConfig { rate: BitRate::parse(rate)?.0, burst: Size::parse(burst)?.0 })
}

fn red(value: &str) -> Result<RedConfig, String> {
    let numbers: Vec<f64> = value.split(':').map_while(|number| number.parse().ok()).collect();
    let [min, max, probability, weight] = numbers[..] else {
        return Err(format!("`{value}`: RED is MIN:MAX:PROBABILITY:WEIGHT, `25000:75000:0.1:0.002`"));
    };
    Ok(RedConfig { min: min as u64, max: max as u64, probability, weight, hard_drop: true })
}

fn codel(value: &str) -> Result<CoDelConfig, String> {
    let (target, interval) =
        value.split_once(':').ok_or_else(|| format!("`{value}`: CoDel is TARGET:INTERVAL, `5ms:100ms`"))?;
    Ok(CoDelConfig { target: Time::parse(target)?.0, interval: Time::parse(interval)?.0, ce_threshold: None })
}

fn loss(value: &str) -> Result<LossModel, String> {
    Percent::parse(value).map(|Percent(share)| if share > 0.0 { LossModel::Random(share) } else { LossModel::None })
}

fn bytes(value: &str) -> Result<u32, String> {
    Size::parse(value)?.0.try_into().map_err(|_| format!("`{value}` is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_pipe() {
        let shape: Shape =
            "rate=30mbit delay=40ms jitter=8ms loss=0.5% duplicate=1% corrupt=2% reorder=3% queue=200ms mtu=1400b"
                .parse()
                .unwrap();
        assert_eq!(shape.pipe.rate, Some(units::Rate::from_mbit(30)));
        assert_eq!((shape.pipe.delay, shape.pipe.jitter), (Span::from_millis(40), Span::from_millis(8).into()));
        let red = RedConfig { min: 25_000, max: 75_000, probability: 0.1, weight: 0.002, hard_drop: true };
        let shape_with_red: Shape = "rate=20mbit queue=300p red=25000:75000:0.1:0.002".parse().unwrap();
        assert!(shape_with_red.pipe.queue.discipline == QueueDiscipline::Red(red) && !shape_with_red.is_rate_only());
        let shape_with_codel: Shape = "rate=20mbit codel=5ms:100ms".parse().unwrap();
        assert_eq!(shape_with_codel.pipe.queue.discipline, QueueDiscipline::CoDel(CoDelConfig::DEFAULT));
        assert!(shape_with_codel.pipe.queue.ecn && !shape_with_codel.is_rate_only());
        assert_eq!((shape.pipe.loss, shape.mtu), (LossModel::Random(0.005), Some(1400)));
        assert_eq!((shape.pipe.duplicate, shape.pipe.corrupt, shape.pipe.reorder.share), (0.01, 0.02, 0.03));
        assert!(!"rate=30mbit duplicate=1%".parse::<Shape>().unwrap().is_rate_only());
        assert!(!shape.is_rate_only() && "rate=30mbit queue=20ms".parse::<Shape>().unwrap().is_rate_only());
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        let error = |words: &str| words.parse::<Shape>().unwrap_err();
        assert!(error("rate=100").contains("100mbit"));
        assert!(error("red=25000:75000").contains("MAX:PROBABILITY"));
        assert!(error("codel=5ms").contains("TARGET:INTERVAL"));
        assert!(error("police=10mbit").contains("RATE:BURST"));
        assert!(error("latency=10ms").contains("delay"));
        assert!(error("fast").contains("key=value"));
        assert!("jitter=1ms".parse::<Change>().unwrap_err().contains("delay="));
    }
}
