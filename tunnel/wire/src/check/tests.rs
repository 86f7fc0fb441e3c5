use super::*;
use proptest::prelude::*;

type Check = fn(&[u8]);

/// The checks by the names of their fuzz targets.
const TARGETS: [(&str, Check); 7] = [
    ("gre", gre),
    ("frames", frames),
    ("relay", relay),
    ("inner", inner),
    ("segment", segment),
    ("coalesce", coalesce),
    ("delivery", delivery),
];

#[test]
fn the_saved_inputs_of_fuzzing_pass_every_check() {
    TARGETS.into_iter().for_each(|(target, check)| testing::saved_inputs(target).iter().for_each(|input| check(input)));
}

/// Mutations of saved inputs that are tested, of each target.
const MUTATIONS: u64 = 20_000;

#[test]
fn mutations_of_the_saved_inputs_pass_every_check() {
    let mut random = units::RngStream::named(1, "near the corpus");
    for (target, check) in TARGETS {
        let inputs = testing::saved_inputs(target);
        for _ in 0..MUTATIONS {
            let mut input = inputs[random.below(inputs.len() as u64) as usize].clone();
            for _ in 0..=random.below(4) {
                let position = random.below(input.len() as u64 + 1) as usize;
                match random.below(3) {
                    0 => input.truncate(position),
                    1 => input.insert(position, random.bits() as u8),
                    _ => input.iter_mut().skip(position).take(1).for_each(|byte| *byte = random.bits() as u8),
                }
            }
            check(&input);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_pass_every_check(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        TARGETS.into_iter().for_each(|(_, check)| check(&data));
    }

    #[test]
    fn bytes_with_a_valid_beginning_pass_every_check(data in proptest::collection::vec(any::<u8>(), 1..200),
                                                       start in 0..VALID_PREFIXES.len()) {
        let data = [VALID_PREFIXES[start], &data].concat();
        TARGETS.into_iter().for_each(|(_, check)| check(&data));
    }
}

/// Beginnings of valid input: IPv4 and IPv6 with TCP and UDP, virtio_net_hdr, an ack frame, GRE.
const VALID_PREFIXES: [&[u8]; 7] = [
    &[0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, 6, 0, 0],
    &[0x60, 0, 0, 0, 0, 20, 17, 64],
    &[0x60, 0, 0, 0, 0, 40, 0, 64],
    &[1, 1, 40, 0, 10, 0, 20, 0, 16, 0, 0x45, 0, 0, 90, 0, 1, 0x40, 0, 64, 6, 0, 0],
    &[1, 5, 48, 0, 10, 0, 40, 0, 6, 0, 0x60, 0, 0, 0, 0, 50, 17, 64],
    &[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1],
    &[0xb0, 0, 0x08, 0],
];
