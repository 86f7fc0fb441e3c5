//! The options of a captured TCP header (RFC 9293, 7323, 2018), with those of MPTCP (RFC 8684).

/// What the options of a TCP header say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The greatest segment that its sender accepts, bytes.
    pub(crate) mss: Option<u16>,
    /// The window scale.
    pub(crate) scale: Option<u8>,
    /// SACK blocks, each from its first number to the one after its last.
    pub(crate) sack: Vec<[u32; 2]>,
    /// The keys of MP_CAPABLE: none, the sender's, or the sender's and the receiver's.
    pub(crate) keys: Option<Vec<[u8; 8]>>,
    /// The receiver's token in the MP_JOIN of a SYN.
    pub(crate) token: Option<u32>,
    /// The Data ACK, and whether it has all 64 bits.
    pub(crate) data_ack: Option<Number>,
    /// The mapping of data.
    pub(crate) mapping: Option<Mapping>,
}

/// A number of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Its lower half.
    Short(u32),
    /// The whole number.
    Long(u64),
}

/// A mapping of a subflow's bytes to numbers of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// Of DSS: the first number of the data, the subflow's number of the same byte (from 0, the SYN's), and the length.
    Dss { data: Number, subflow: u32, length: u16 },
    /// Of MP_CAPABLE: the packet has the first data of the connection.
    First,
}

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK: u8 = 5;
const MPTCP: u8 = 30;
const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
const DSS: u8 = 2;
/// The greatest scale (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;

impl Options {
    /// Reads options. What is malformed ends them.
    pub(crate) fn parse(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        while let [kind, rest @ ..] = bytes {
            bytes = match (*kind, rest) {
                (END, _) => break,
                (NOP, rest) => rest,
                (kind, [length, ..]) if *length >= 2 && usize::from(*length) <= bytes.len() => {
                    let (option, others) = bytes.split_at(usize::from(*length));
                    options.add(kind, &option[2..]);
                    others
                }
                _ => break,
            };
        }
        options
    }

    fn add(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (MSS, [high, low]) => self.mss = Some(u16::from_be_bytes([*high, *low])),
            (SCALE, [scale]) => self.scale = Some((*scale).min(MAX_SCALE)),
            (SACK, blocks) => {
                let edges = |block: &[u8]| Some([read_u32(block.get(..4)?)?, read_u32(block.get(4..)?)?]);
                self.sack.extend(blocks.chunks_exact(8).filter_map(edges));
            }
            (MPTCP, [first, rest @ ..]) => match first >> 4 {
                MP_CAPABLE => self.add_capable(rest),
                // Only the SYN has a token; its answer and the third packet are longer.
                MP_JOIN if value.len() == 10 => self.token = rest.get(1..5).and_then(read_u32),
                DSS => drop(self.add_dss(rest)),
                _ => {}
            },
            _ => {}
        }
    }

    /// MP_CAPABLE without its first byte (section 3.1): flags, up to two keys, and with data its length.
    fn add_capable(&mut self, value: &[u8]) {
        let keys = value.get(1..).unwrap_or(&[]);
        let (keys, data_length) = keys.as_chunks::<8>();
        self.keys = Some(keys.iter().copied().take(2).collect());
        self.mapping = (keys.len() == 2 && !data_length.is_empty()).then_some(Mapping::First).or(self.mapping);
    }

    /// DSS without its first byte (section 3.3): flags, Data ACK, data sequence number, subflow sequence number, length.
    fn add_dss(&mut self, value: &[u8]) -> Option<()> {
        let (flags, mut rest) = value.split_first()?;
        let mut number = |is_there: bool, is_long: bool| {
            let size = if is_long { 8 } else { 4 };
            let (number, others) = rest.split_at_checked(if is_there { size } else { 0 })?;
            rest = others;
            match number.len() {
                8 => Some(Number::Long(u64::from_be_bytes(number.try_into().ok()?))),
                _ => read_u32(number).map(Number::Short),
            }
        };
        self.data_ack = number(flags & 1 != 0, flags & 2 != 0);
        let data = number(flags & 4 != 0, flags & 8 != 0)?;
        let subflow = read_u32(rest.get(..4)?)?;
        let length = u16::from_be_bytes(rest.get(4..6)?.try_into().ok()?);
        self.mapping = Some(Mapping::Dss { data, subflow, length });
        Some(())
    }
}

fn read_u32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layouts of RFC 9293, section 3.1, RFC 7323, 2018 and 8684.
    #[test]
    fn options_of_tcp_and_mptcp_are_read() {
        let syn = Options::parse(&[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7]);
        assert_eq!((syn.mss, syn.scale), (Some(1460), Some(7)));
        let sack = Options::parse(&[1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 9]);
        assert_eq!(sack.sack, [[1, 2], [5, 9]]);
        let capable = [&[30, 20, 1, 1][..], &[7; 8], &[8; 8]].concat();
        assert_eq!(Options::parse(&capable).keys, Some(vec![[7; 8], [8; 8]]));
        let with_data = [&[30, 22, 1, 1][..], &[7; 8], &[8; 8], &[0, 100]].concat();
        assert_eq!(Options::parse(&with_data).mapping, Some(Mapping::First));
        let join = [30, 12, 0x10, 1, 0, 0, 0, 9, 0, 0, 0, 3];
        assert_eq!(Options::parse(&join).token, Some(9));
        let answer = [&[30, 16, 0x10, 1][..], &[0; 12]].concat();
        assert_eq!(Options::parse(&answer).token, None);
        let dss = [30, 18, 0x20, 5, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 7];
        let read = Options::parse(&dss);
        assert_eq!(read.data_ack, Some(Number::Short(4)));
        assert_eq!(read.mapping, Some(Mapping::Dss { data: Number::Short(5), subflow: 6, length: 7 }));
        let long = [&[30, 26, 0x20, 0x0f][..], &4u64.to_be_bytes(), &5u64.to_be_bytes(), &[0, 0, 0, 6, 0, 7]].concat();
        let read = Options::parse(&long);
        assert_eq!(read.data_ack, Some(Number::Long(4)));
        assert_eq!(read.mapping, Some(Mapping::Dss { data: Number::Long(5), subflow: 6, length: 7 }));
    }

    #[test]
    fn what_is_cut_is_no_option() {
        let dss = [30, 18, 0x20, 5, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 7];
        for end in 0..dss.len() {
            assert_eq!(Options::parse(&dss[..end]), Options::default());
            let mut short = dss[..end].to_vec();
            short.iter_mut().skip(1).take(1).for_each(|length| *length = end as u8);
            assert_eq!(Options::parse(&short).mapping, None);
        }
    }
}
