//! The Noise handshake IKpsk2 (Noise revision 34, sections 7.5 and 9), which WireGuard uses, too: the initiator knows
//! the responder's public key and sends its own encrypted, and the second message mixes in the preshared key.
//!
//! The crate `snow` runs the pattern with the primitives of this file: the curve refuses points of low order and wipes
//! private keys, and the cipher is the one for data. Random bytes are drawn beforehand, so that a seeded run gives the
//! same bytes.

use blake2::{Blake2s256, Digest};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

use crate::cipher::{Cipher, DataKey, TAG_LEN};
use crate::entropy::{Entropy, random_bytes};
use crate::keys::{KEY_LEN, PresharedKey, PrivateKey, PublicKey, derive_public, x25519};
use crate::message::HEADER_LEN;

/// The protocol name in the Noise framework.
pub const NOISE_PROTOCOL_NAME: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";

/// The first bytes of the prologue, which identify the protocol; the initiation's header follows.
const PROLOGUE: &[u8; 8] = b"ropewalk";

/// Position of the `psk` token in IKpsk2.
const PSK_POSITION: u8 = 2;

/// The state of a handshake.
pub(crate) struct Noise(HandshakeState);

/// The two keys of `Split()`: from initiator to responder, and back.
pub(crate) type Split = Zeroizing<([u8; KEY_LEN], [u8; KEY_LEN])>;

impl Noise {
    /// Creates the initiator's state and writes the first message to `message`. `None` if the responder's key is a
    /// point of low order.
    pub(crate) fn write_initiation(
        entropy: &mut dyn Entropy,
        (private_key, responder, preshared): (&PrivateKey, &PublicKey, &PresharedKey),
        header: &[u8; HEADER_LEN],
        payload: &[u8],
        message: &mut [u8],
    ) -> Option<Self> {
        let prologue = prologue(header);
        let builder =
            builder(entropy, private_key, &prologue).remote_public_key(responder.bytes()).expect("given once");
        let builder = builder.psk(PSK_POSITION, preshared.bytes()).expect("given once");
        let mut state = builder.build_initiator().expect("all keys are given");
        state.write_message(payload, message).ok()?;
        Some(Self(state))
    }

    /// Creates the responder's state from the first message; returns the initiator's public key, and writes its
    /// payload. `None` if it is not authentic.
    pub(crate) fn read_initiation(
        entropy: &mut dyn Entropy,
        private_key: &PrivateKey,
        header: &[u8; HEADER_LEN],
        message: &[u8],
        payload: &mut [u8],
    ) -> Option<(Self, PublicKey)> {
        let prologue = prologue(header);
        let mut state = builder(entropy, private_key, &prologue).build_responder().expect("all keys are given");
        state.read_message(message, payload).ok()?;
        let initiator = PublicKey::from_bytes(state.get_remote_static()?.try_into().ok()?);
        Some((Self(state), initiator))
    }

    /// Writes the second message to `message`; returns the keys.
    pub(crate) fn write_response(
        mut self,
        preshared: &PresharedKey,
        payload: &[u8],
        message: &mut [u8],
    ) -> Option<Split> {
        self.0.set_psk(PSK_POSITION.into(), preshared.bytes()).expect("a preshared key has its length");
        self.0.write_message(payload, message).ok()?;
        Some(self.split())
    }

    /// Reads the second message. `None` if it is not authentic; the handshake stays pending.
    pub(crate) fn read_response(&mut self, message: &[u8], payload: &mut [u8]) -> Option<Split> {
        self.0.read_message(message, payload).ok()?;
        Some(self.split())
    }

    fn split(&mut self) -> Split {
        Zeroizing::new(self.0.dangerously_get_raw_split())
    }
}

fn prologue(header: &[u8; HEADER_LEN]) -> [u8; PROLOGUE.len() + HEADER_LEN] {
    let mut prologue = [0; PROLOGUE.len() + HEADER_LEN];
    prologue[..PROLOGUE.len()].copy_from_slice(PROLOGUE);
    prologue[PROLOGUE.len()..].copy_from_slice(header);
    prologue
}

fn builder<'a>(entropy: &mut dyn Entropy, private_key: &'a PrivateKey, prologue: &'a [u8]) -> Builder<'a> {
    let primitives = Primitives { ephemeral: random_bytes(entropy) };
    let builder =
        Builder::with_resolver(NOISE_PROTOCOL_NAME.parse().expect("snow knows the pattern"), Box::new(primitives));
    let builder = builder.local_private_key(private_key.bytes()).expect("given once");
    builder.prologue(prologue).expect("given once")
}

/// The primitives of one handshake.
struct Primitives {
    ephemeral: [u8; KEY_LEN],
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(EphemeralKeyRng(Some(self.ephemeral))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::<X25519>::default() as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        (*choice == HashChoice::Blake2s).then(|| Box::new(Blake2s(Blake2s256::new())) as _)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn snow::types::Cipher>> {
        (*choice == CipherChoice::ChaChaPoly).then(|| Box::new(ChaChaPoly(data_key(&[0; KEY_LEN]))) as _)
    }
}

impl Drop for Primitives {
    fn drop(&mut self) {
        self.ephemeral.zeroize();
    }
}

/// The random generator of one handshake, which returns its ephemeral key once.
struct EphemeralKeyRng(Option<[u8; KEY_LEN]>);

impl Random for EphemeralKeyRng {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let mut bytes = self.0.take().ok_or(Error::Rng)?;
        if dest.len() != KEY_LEN {
            return Err(Error::Rng);
        }
        dest.copy_from_slice(&bytes);
        bytes.zeroize();
        Ok(())
    }
}

/// A Curve25519 key pair.
#[derive(Default)]
struct X25519 {
    private_key: Zeroizing<[u8; KEY_LEN]>,
    public_key: [u8; KEY_LEN],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_LEN
    }

    fn priv_len(&self) -> usize {
        KEY_LEN
    }

    fn set(&mut self, private_key: &[u8]) {
        self.private_key.copy_from_slice(private_key);
        self.public_key = derive_public(&self.private_key);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        rng.try_fill_bytes(&mut *self.private_key)?;
        self.public_key = derive_public(&self.private_key);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public_key
    }

    fn privkey(&self) -> &[u8] {
        &*self.private_key
    }

    fn dh(&self, public_key: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public_key = public_key.first_chunk().ok_or(Error::Dh)?;
        let secret = x25519(&self.private_key, public_key).ok_or(Error::Dh)?;
        out[..KEY_LEN].copy_from_slice(&*secret);
        Ok(())
    }
}

/// The hash of the handshake (Noise section 12.5).
struct Blake2s(Blake2s256);

impl Hash for Blake2s {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&self.0.finalize_reset());
    }
}

/// The cipher of the handshake's messages (Noise section 12.3): the nonce is 32 bits of zero and the counter.
struct ChaChaPoly(DataKey);

fn data_key(key: &[u8; KEY_LEN]) -> DataKey {
    DataKey::new(Cipher::ChaCha20Poly1305, key)
}

fn chacha_nonce(counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    nonce
}

impl snow::types::Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; KEY_LEN]) {
        self.0 = data_key(key);
    }

    fn encrypt(&self, counter: u64, header: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (body, tag) = out.split_at_mut(plaintext.len());
        body.copy_from_slice(plaintext);
        self.0.seal(chacha_nonce(counter), header, body, tag.first_chunk_mut().expect("snow leaves room for the tag"));
        plaintext.len() + TAG_LEN
    }

    fn decrypt(&self, counter: u64, header: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let mut sealed = Zeroizing::new(sealed.to_vec());
        let plaintext = self.0.open(chacha_nonce(counter), header, &mut sealed).ok_or(Error::Decrypt)?;
        out.get_mut(..plaintext.len()).ok_or(Error::Decrypt)?.copy_from_slice(plaintext);
        Ok(plaintext.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::unhex;

    fn key(text: &str) -> [u8; KEY_LEN] {
        unhex(text).try_into().unwrap()
    }

    /// The vector of Cacophony for this pattern (as the Noise wiki collects them), with the resolver of this file.
    #[test]
    fn the_handshake_equals_the_public_test_vector_of_the_pattern() {
        let preshared = key("54686973206973206d7920417573747269616e20706572737065637469766521");
        let prologue = unhex("4a6f686e2047616c74");
        let keys_of = |private: &[u8; KEY_LEN], ephemeral| {
            let mut ephemeral_key = move |bytes: &mut [u8]| bytes.copy_from_slice(&key(ephemeral));
            let private_key = PrivateKey::from_bytes(*private);
            (private_key.clone(), Primitives { ephemeral: random_bytes(&mut ephemeral_key) })
        };
        let initiator = key("e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1");
        let responder = key("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893");
        let (i, i_ephemeral) = keys_of(&initiator, "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
        let (r, r_ephemeral) = keys_of(&responder, "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");
        let (private_key, public) = (*i.bytes(), *r.public_key().bytes());
        let builder = |ephemeral_key, private_key| {
            let builder = Builder::with_resolver(NOISE_PROTOCOL_NAME.parse().unwrap(), Box::new(ephemeral_key));
            builder
                .local_private_key(private_key)
                .unwrap()
                .prologue(&prologue)
                .unwrap()
                .psk(PSK_POSITION, &preshared)
                .unwrap()
        };
        let mut i = builder(i_ephemeral, &private_key).remote_public_key(&public).unwrap().build_initiator().unwrap();
        let mut r = builder(r_ephemeral, r.bytes()).build_responder().unwrap();
        let (mut message, mut payload) = ([0; 200], [0; 100]);

        let length = i.write_message(&unhex("4c756477696720766f6e204d69736573"), &mut message).unwrap();
        let first = "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944001e21de9f98ddd8e2ad57527207feb5\
                     6253c9c94a9e496782ecfcb2a75fbcaf1b52948cc48daefe660c62119ab5000980c84831215f2441eba616548e832985\
                     464cf17e51ee93109008399a21f7e13f";
        assert_eq!(message[..length], unhex(first));
        assert_eq!(r.read_message(&message[..length], &mut payload), Ok(16));

        let length = r.write_message(&unhex("4d757272617920526f746862617264"), &mut message).unwrap();
        let second = "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843cb765f2caef0751b8f007572dab03222\
                      17755c0632f365717edbf34d33e87a";
        assert_eq!(message[..length], unhex(second));
        assert_eq!(i.read_message(&message[..length], &mut payload), Ok(15));

        let hash = unhex("f5191b875290abcd41347ac3622d9679688a7e980229cb937ef748336cfde0e5");
        assert_eq!(i.get_handshake_hash(), hash);
        assert_eq!(i.dangerously_get_raw_split(), r.dangerously_get_raw_split());
        // The vector's next message is sealed with the initiator's key, a nonce of zero and no header.
        let mut sealed = unhex("8153ca9833bc3c1b91a7e66e5f4d4f5b59bf9e64c2f20d15f0bba7");
        let split = crate::cipher::DataKey::new(crate::Cipher::ChaCha20Poly1305, &i.dangerously_get_raw_split().0);
        assert_eq!(split.open([0; 12], &[], &mut sealed).unwrap(), unhex("462e20412e20486179656b"));
    }
}
