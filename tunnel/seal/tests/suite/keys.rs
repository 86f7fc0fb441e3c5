//! Key files as `wg` writes them, and the errors of other texts.

use proptest::prelude::*;
use seal::{KEY_TEXT_LEN, KeyError, PresharedKey, PrivateKey, PublicKey};

use crate::test_peer::entropy;

/// RFC 7748 section 6.1, in base64: Bob's private and public key, as `wg pubkey` pairs them.
const BOB: &str = "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os=";
const BOB_PUBLIC: &str = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";

#[test]
fn a_wireguard_key_file_is_read() {
    let key: PrivateKey = format!("{BOB}\n").parse().unwrap();
    assert_eq!(key.public_key().to_string(), BOB_PUBLIC);
    assert_eq!(*key.to_text(), BOB);
    assert_eq!(BOB_PUBLIC.parse::<PublicKey>().unwrap(), key.public_key());
}

#[test]
fn a_new_private_key_is_clamped_as_rfc_7748_says() {
    let mut ones = |bytes: &mut [u8]| bytes.fill(0xff);
    let text = PrivateKey::generate(&mut ones).to_text();
    assert_eq!(*text, "+P///////////////////////////////////////38=");
    let mut zeros = |bytes: &mut [u8]| bytes.fill(0);
    assert_eq!(*PrivateKey::generate(&mut zeros).to_text(), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEA=");
}

#[test]
fn errors_name_the_length_or_position_and_not_the_key() {
    let parse_error = |text: &str| text.parse::<PrivateKey>().unwrap_err();
    assert_eq!(parse_error(""), KeyError::Length(0));
    assert_eq!(parse_error(&BOB[1..]), KeyError::Length(43));
    assert_eq!(parse_error(&BOB.replace('=', "==")), KeyError::Length(45));
    assert_eq!(parse_error(&BOB.replace('+', "-")), KeyError::Character(15), "URL-safe base64 is another alphabet");
    assert_eq!(parse_error(&BOB.replace('=', "A")), KeyError::Character(44), "33 bytes");
    assert_eq!(parse_error(&BOB.replace("Os=", "Ot=")), KeyError::TrailingBits, "bits beyond the 32 bytes");
    assert_eq!(parse_error(&"ä".repeat(KEY_TEXT_LEN)), KeyError::Character(1));
    let message = parse_error(&BOB[1..]).to_string();
    assert!(message.contains("44") && message.contains("43"), "{message}");
}

#[test]
fn debug_output_hides_secrets() {
    let private: PrivateKey = BOB.parse().unwrap();
    let preshared = PresharedKey::generate(&mut entropy(1, "preshared"));
    assert_eq!(format!("{private:?} {preshared:?}"), "PrivateKey(secret) PresharedKey(secret)");
}

proptest! {
    #[test]
    fn every_key_is_parsed_from_its_text_and_no_error_repeats_the_text(
        bytes in any::<[u8; 32]>(), position in 0usize..44, character in "[ -~]",
    ) {
        let text = PresharedKey::from_bytes(bytes).to_text();
        prop_assert_eq!(text.parse::<PresharedKey>().unwrap(), PresharedKey::from_bytes(bytes));
        let mut changed = text.to_string();
        changed.replace_range(position..=position, &character);
        if let Err(error) = changed.parse::<PresharedKey>() {
            let message = format!("{error} {error:?}");
            prop_assert!(!text.as_bytes().windows(8).any(|part| message.as_bytes().windows(8).any(|word| word == part)));
        }
    }
}
