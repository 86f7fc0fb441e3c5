use super::*;
use proptest::prelude::*;
use std::path::Path;

type Check = fn(&[u8]);

/// The checks by the names of their fuzz targets.
const TARGETS: [(&str, Check); 5] =
    [("gre", gre), ("frames", frames), ("inner", inner), ("segment", segment), ("coalesce", coalesce)];

#[test]
fn what_a_fuzzer_has_found_passes_every_check() {
    for (target, check) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let inputs: Vec<_> =
            std::fs::read_dir(&folder).expect("a folder of inputs").map(|entry| entry.unwrap()).collect();
        assert!(inputs.len() >= 5, "{} has few inputs", folder.display());
        for input in inputs {
            check(&std::fs::read(input.path()).unwrap());
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_pass_every_check(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        TARGETS.into_iter().for_each(|(_, check)| check(&data));
    }

    #[test]
    fn bytes_that_begin_like_a_packet_pass_every_check(data in proptest::collection::vec(any::<u8>(), 1..200),
                                                       start in 0..LIKELY.len()) {
        let data = [LIKELY[start], &data].concat();
        TARGETS.into_iter().for_each(|(_, check)| check(&data));
    }
}

/// Beginnings that lead deeper than random ones: IPv4 and IPv6 with TCP and UDP, an offload, acknowledgements, GRE.
const LIKELY: [&[u8]; 7] = [
    &[0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, 6, 0, 0],
    &[0x60, 0, 0, 0, 0, 20, 17, 64],
    &[0x60, 0, 0, 0, 0, 40, 0, 64],
    &[1, 1, 40, 0, 10, 0, 20, 0, 16, 0, 0x45, 0, 0, 90, 0, 1, 0x40, 0, 64, 6, 0, 0],
    &[1, 5, 48, 0, 10, 0, 40, 0, 6, 0, 0x60, 0, 0, 0, 0, 50, 17, 64],
    &[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1],
    &[0xb0, 0, 0x08, 0],
];
