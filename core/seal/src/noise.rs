//! The Noise handshake IKpsk2 (Noise revision 34, sections 7.5 and 9; WireGuard's): the initiator knows the responder's
//! public key, tells its own under encryption, and the preshared key enters with the second message.
//!
//! Snow runs the pattern. Curve25519 comes from AWS-LC, which wipes nothing away but is fast, takes the same time for
//! every key and refuses points of low order; chance is drawn before, so that a seeded run gives the same bytes.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

use crate::entropy::{Entropy, draw};
use crate::keys::{KEY, PresharedKey, PrivateKey, PublicKey, agree, derive};
use crate::message::HEADER;

/// Its name in the Noise framework.
pub const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";

/// What makes it this protocol's handshake and no other's; the initiation's header follows.
const PROLOGUE: &[u8; 8] = b"ropewalk";

/// Where IKpsk2 mixes the preshared key in.
const PSK_PLACE: u8 = 2;

/// A handshake under way.
pub(crate) struct Noise(HandshakeState);

/// Keys of a finished handshake: from the initiator to the responder, and back.
pub(crate) type Split = Zeroizing<([u8; KEY], [u8; KEY])>;

impl Noise {
    /// Begins as initiator: its first message goes to `out`. None if the responder's key is a point of low order.
    pub(crate) fn initiate(
        entropy: &mut dyn Entropy,
        (own, responder, preshared): (&PrivateKey, &PublicKey, &PresharedKey),
        header: &[u8; HEADER],
        payload: &[u8],
        out: &mut [u8],
    ) -> Option<Self> {
        let prologue = prologue(header);
        let builder = builder(entropy, own, &prologue).remote_public_key(responder.bytes()).expect("given once");
        let builder = builder.psk(PSK_PLACE, preshared.bytes()).expect("given once");
        let mut state = builder.build_initiator().expect("all keys are given");
        state.write_message(payload, out).ok()?;
        Some(Self(state))
    }

    /// Reads an initiation: who sent it, and its payload. None if it does not prove true.
    pub(crate) fn receive(
        entropy: &mut dyn Entropy,
        own: &PrivateKey,
        header: &[u8; HEADER],
        message: &[u8],
        payload: &mut [u8],
    ) -> Option<(Self, PublicKey)> {
        let prologue = prologue(header);
        let mut state = builder(entropy, own, &prologue).build_responder().expect("all keys are given");
        state.read_message(message, payload).ok()?;
        let initiator = PublicKey::from_bytes(state.get_remote_static()?.try_into().ok()?);
        Some((Self(state), initiator))
    }

    /// Answers as responder: the second message goes to `out`.
    pub(crate) fn respond(mut self, preshared: &PresharedKey, payload: &[u8], out: &mut [u8]) -> Option<Split> {
        self.0.set_psk(PSK_PLACE.into(), preshared.bytes()).expect("a preshared key has its length");
        self.0.write_message(payload, out).ok()?;
        Some(self.split())
    }

    /// Reads the answer as initiator. None, and the handshake goes on waiting, if it does not prove true.
    pub(crate) fn finish(&mut self, message: &[u8], payload: &mut [u8]) -> Option<Split> {
        self.0.read_message(message, payload).ok()?;
        Some(self.split())
    }

    fn split(&mut self) -> Split {
        Zeroizing::new(self.0.dangerously_get_raw_split())
    }
}

fn prologue(header: &[u8; HEADER]) -> [u8; PROLOGUE.len() + HEADER] {
    let mut prologue = [0; PROLOGUE.len() + HEADER];
    prologue[..PROLOGUE.len()].copy_from_slice(PROLOGUE);
    prologue[PROLOGUE.len()..].copy_from_slice(header);
    prologue
}

fn builder<'a>(entropy: &mut dyn Entropy, own: &'a PrivateKey, prologue: &'a [u8]) -> Builder<'a> {
    let primitives = Primitives { ephemeral: draw(entropy) };
    let builder = Builder::with_resolver(PATTERN.parse().expect("snow knows the pattern"), Box::new(primitives));
    let builder = builder.local_private_key(own.bytes()).expect("given once");
    builder.prologue(prologue).expect("given once")
}

/// Snow's primitives, but for chance and the curve.
struct Primitives {
    ephemeral: [u8; KEY],
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn(Some(self.ephemeral))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::<Curve>::default() as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl Drop for Primitives {
    fn drop(&mut self) {
        self.ephemeral.zeroize();
    }
}

/// The one draw of a handshake: its ephemeral key.
struct Drawn(Option<[u8; KEY]>);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let mut bytes = self.0.take().ok_or(Error::Rng)?;
        if dest.len() != KEY {
            return Err(Error::Rng);
        }
        dest.copy_from_slice(&bytes);
        bytes.zeroize();
        Ok(())
    }
}

/// A Curve25519 key pair.
#[derive(Default)]
struct Curve {
    private: Zeroizing<[u8; KEY]>,
    public: [u8; KEY],
}

impl Dh for Curve {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY
    }

    fn priv_len(&self) -> usize {
        KEY
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = derive(&self.private);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        rng.try_fill_bytes(&mut *self.private)?;
        self.public = derive(&self.private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let secret = agree(&self.private, &public[..KEY]).ok_or(Error::Dh)?;
        out[..KEY].copy_from_slice(&*secret);
        Ok(())
    }
}
