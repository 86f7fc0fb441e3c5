//! The checks of the fuzz targets, over the inputs saved in `fuzz/corpus` and over random ones.

use proptest::prelude::*;
use seal::check;

fn check_saved_inputs(target: &str, check: impl Fn(&[u8])) {
    testing::saved_inputs(target).iter().for_each(|input| check(input));
}

#[test]
fn saved_handshake_messages_are_dropped_or_authentic() {
    check_saved_inputs("handshake", check::handshake);
}

#[test]
fn saved_datagrams_are_opened_at_most_once() {
    check_saved_inputs("session", check::session);
}

#[test]
fn saved_key_texts_are_rejected_or_round_trip() {
    check_saved_inputs("key", check::key);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_handshake_messages_are_dropped(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check::handshake(&bytes);
    }

    #[test]
    fn random_numbers_are_opened_at_most_once(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        check::session(&bytes);
    }

    #[test]
    fn random_texts_are_no_keys(text in "\\PC{0,60}|[A-Za-z0-9+/]{43}=") {
        check::key(text.as_bytes());
    }
}
