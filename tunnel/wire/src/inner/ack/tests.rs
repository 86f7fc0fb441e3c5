use super::*;

/// What a segment is made of.
#[derive(Clone, Debug)]
struct Segment {
    v6: bool,
    tos: u8,
    port: u16,
    sequence: u32,
    acknowledgement: u32,
    reserved: u8,
    flags: u8,
    window: u16,
    options: Vec<u8>,
    data: &'static [u8],
}

impl Segment {
    fn packet(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), option::NO_OPERATION);
        let mut tcp = [self.port.to_be_bytes(), 443_u16.to_be_bytes()].concat();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.to_be_bytes());
        tcp.extend([(5 + options.len() as u8 / 4) << 4 | self.reserved, self.flags]);
        tcp.extend([self.window.to_be_bytes(), [0, 0], [0, 0]].concat());
        tcp.extend(options);
        tcp.extend(self.data);
        let len = tcp.len() as u16;
        let ip = if self.v6 {
            let mut ip = vec![0x60 | self.tos >> 4, self.tos << 4, 0, 0];
            ip.extend([&len.to_be_bytes()[..], &[6, 64], &[1; 16], &[2; 16]].concat());
            ip
        } else {
            let mut ip = vec![0x45, self.tos];
            ip.extend([&(20 + len).to_be_bytes()[..], &[0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat());
            ip
        };
        [ip, tcp].concat()
    }
}

fn ack(acknowledgement: u32) -> Segment {
    Segment {
        v6: false,
        tos: 0,
        port: 5000,
        sequence: 77,
        acknowledgement,
        reserved: 0,
        flags: ACK,
        window: 100,
        options: timestamps(1),
        data: b"",
    }
}

fn timestamps(value: u32) -> Vec<u8> {
    [&[option::TIMESTAMPS, 10][..], &value.to_be_bytes(), &[0; 4]].concat()
}

/// The option with these blocks, after timestamps.
fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    let edges = blocks.iter().flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()].concat());
    [timestamps(1), vec![option::SACK, 2 + 8 * blocks.len() as u8]].concat().into_iter().chain(edges).collect()
}

fn supersedes(later: &Segment, earlier: &Segment) -> bool {
    let both = [later, earlier].map(Segment::packet);
    let [later, earlier] = [0, 1].map(|index| parse(&both[index]));
    match (later, earlier) {
        (Some((connection, Some(later))), Some((other, Some(earlier)))) => {
            connection == other && later.supersedes(&earlier)
        }
        _ => false,
    }
}

#[test]
fn a_greater_acknowledgement_with_newer_timestamps_and_another_window_supersedes_an_earlier_one() {
    for v6 in [false, true] {
        let earlier = Segment { v6, ..ack(1000) };
        assert!(supersedes(&Segment { v6, options: timestamps(9), window: 200, ..ack(2000) }, &earlier));
        assert!(supersedes(&Segment { v6, ..ack(5) }, &Segment { v6, ..ack(u32::MAX - 5) }), "modulo 2^32");
        assert!(!supersedes(&Segment { v6, ..ack(999) }, &earlier), "an older one");
    }
}

#[test]
fn duplicates_and_window_updates_stay() {
    assert!(!supersedes(&ack(1000), &ack(1000)));
    assert!(!supersedes(&Segment { window: 900, ..ack(1000) }, &ack(1000)));
    let [later, earlier] = [ack(1000), ack(1000)].map(|segment| segment.packet());
    let (Some((_, Some(later))), Some((_, Some(earlier)))) = (parse(&later), parse(&earlier)) else { panic!("both") };
    assert!(later.is_duplicate_of(&earlier));
}

#[test]
fn what_is_no_pure_acknowledgement_stays() {
    for flags in [0x11, 0x12, 0x14, 0x18, 0x30, 0x02, 0x00] {
        assert!(!supersedes(&ack(2000), &Segment { flags, ..ack(1000) }), "flags {flags:#x}");
        assert!(!supersedes(&Segment { flags, ..ack(2000) }, &ack(1000)), "flags {flags:#x}");
    }
    assert!(!supersedes(&ack(2000), &Segment { data: b"x", ..ack(1000) }));
    assert!(!supersedes(&Segment { data: b"x", ..ack(2000) }, &ack(1000)));
    assert!(!supersedes(&Segment { sequence: 78, ..ack(2000) }, &ack(1000)), "data was sent between them");
    assert!(!supersedes(&Segment { port: 5001, ..ack(2000) }, &ack(1000)), "another connection");
    let mut with_ip_options = ack(1000).packet();
    with_ip_options[0] = 0x46;
    with_ip_options[3] += 4;
    with_ip_options.splice(20..20, [1, 1, 1, 0]);
    assert!(parse(&with_ip_options).is_some_and(|(_, ack)| ack.is_none()));
    let mut fragment = ack(1000).packet();
    fragment[6] = 0x20;
    assert!(parse(&fragment).is_none());
    assert!(parse(&[]).is_none());
}

#[test]
fn what_ecn_says_stays() {
    for (reserved, flags) in [(0, 0x50), (0, 0x90), (1, ACK)] {
        let marked = |number| Segment { reserved, flags, ..ack(number) };
        assert!(!supersedes(&ack(2000), &marked(1000)) && !supersedes(&marked(2000), &ack(1000)));
        assert!(supersedes(&marked(2000), &marked(1000)), "both say the same");
    }
    assert!(!supersedes(&Segment { tos: 3, ..ack(2000) }, &Segment { tos: 2, ..ack(1000) }), "CE of the path");
    let accurate = |number, count| Segment { options: vec![172, 5, 0, 0, count], ..ack(number) };
    assert!(!supersedes(&accurate(2000, 2), &accurate(1000, 1)), "counters of accurate ECN");
    assert!(supersedes(&accurate(2000, 2), &accurate(1000, 2)));
}

#[test]
fn sack_blocks_that_are_not_covered_stay() {
    let with = |number, blocks: &[(u32, u32)]| Segment { options: sack(blocks), ..ack(number) };
    assert!(!supersedes(&ack(2000), &with(1000, &[(3000, 4000)])));
    assert!(supersedes(&ack(4000), &with(1000, &[(3000, 4000)])), "below the acknowledgement");
    assert!(supersedes(&with(2000, &[(3000, 5000)]), &with(1000, &[(3000, 4000)])));
    assert!(!supersedes(&with(2000, &[(3500, 5000)]), &with(1000, &[(3000, 4000)])));
    assert!(!supersedes(&ack(9000), &with(1000, &[(500, 600)])), "a duplicate below the acknowledgement");
    assert!(!supersedes(&ack(9000), &with(1000, &[(3000, 4000), (2500, 5000)])), "a duplicate above it");
}

#[test]
fn a_duplicate_whose_sack_blocks_say_more_supersedes_an_earlier_one() {
    let with = |blocks: &[(u32, u32)]| Segment { options: sack(blocks), ..ack(1000) };
    assert!(supersedes(&with(&[(3000, 5000)]), &with(&[(3000, 4000)])), "a block that grew");
    assert!(supersedes(&with(&[(6000, 7000), (3000, 4000)]), &with(&[(3000, 4000)])), "one more");
    assert!(supersedes(&with(&[(3000, 4000)]), &ack(1000)), "the first one");
    assert!(!supersedes(&with(&[(3000, 4000)]), &with(&[(3000, 4000)])), "the same");
    assert!(!supersedes(&with(&[(6000, 7000)]), &with(&[(3000, 4000)])), "one is missing");
    assert!(
        !supersedes(&with(&[(500, 600), (3000, 4000)]), &with(&[(3000, 4000)])),
        "a duplicate below the acknowledgement"
    );
    assert!(!supersedes(&with(&[(3100, 3200), (3000, 4000)]), &with(&[(3000, 4000)])), "a duplicate above it");
    assert!(
        !supersedes(&with(&[(500, 600), (3000, 5000)]), &with(&[(500, 600), (3000, 4000)])),
        "an earlier duplicate"
    );
}

#[test]
fn other_options_have_to_be_the_same_and_malformed_ones_stay() {
    let with = |number, options: &[u8]| Segment { options: options.to_vec(), ..ack(number) };
    let mptcp = [30, 4, 0x20, 1];
    assert!(supersedes(&with(2000, &mptcp), &with(1000, &mptcp)));
    assert!(!supersedes(&with(2000, &[30, 4, 0x20, 2]), &with(1000, &mptcp)));
    assert!(!supersedes(&with(2000, &[]), &with(1000, &mptcp)) && !supersedes(&with(2000, &mptcp), &with(1000, &[])));
    assert!(!supersedes(&with(2000, &[]), &ack(1000)), "timestamps that end");
    for malformed in [&[8, 0][..], &[8, 40], &[5, 9, 0, 0, 0, 0, 0, 0, 0], &[8, 3, 1], &[30, 1, 1, 1]] {
        assert!(!supersedes(&with(2000, malformed), &with(1000, malformed)), "{malformed:?}");
    }
}
