//! Keys that do not encrypt, and a handshake with the sizes of TLS 1.3's: the same bytes in every run, at no cost.
//!
//! The stacks have nearly the same traits for cryptography. `null_crypto!` implements those of one of
//! them with what is here.

use strings::fnv1a;

/// Bytes of an AEAD's tag (RFC 9001, section 5.3).
pub(crate) const TAG: usize = 16;
/// Bytes of a ClientHello with common extensions.
const CLIENT_HELLO: usize = 280;
/// Bytes of a ServerHello.
const SERVER_HELLO: usize = 90;
/// Bytes of EncryptedExtensions, Certificate, CertificateVerify and Finished.
const CERTIFICATE: usize = 800;
/// Bytes of a client's Finished.
const FINISHED: usize = 36;

/// The keys of an encryption level: the byte of which tags consist, so that a packet of another level is not taken.
pub(crate) type Level = u8;
/// Level of Initial packets.
pub(crate) const INITIAL: Level = 1;
/// Level of Handshake packets.
pub(crate) const HANDSHAKE: Level = 2;
/// Level of the first phase of 1-RTT packets; each key update adds one.
pub(crate) const ONE_RTT: Level = 3;

/// The next step of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    SendClientHello,
    AwaitServerHello,
    TakeHandshakeKeys,
    AwaitCertificate,
    SendFinished,
    AwaitClientHello,
    SendServerHello,
    SendCertificate,
    AwaitFinished,
    Complete,
}

/// An end of a handshake. Messages are their length, that of the transport parameters, these, and zeros.
#[derive(Debug)]
pub(crate) struct Handshake {
    step: Step,
    params: Vec<u8>,
    peer_params: Option<Vec<u8>>,
    input: Vec<u8>,
}

impl Handshake {
    /// A handshake that tells the peer these transport parameters.
    pub(crate) fn new(is_client: bool, params: Vec<u8>) -> Self {
        let step = if is_client { Step::SendClientHello } else { Step::AwaitClientHello };
        Self { step, params, peer_params: None, input: Vec::new() }
    }

    /// Whether the peer has not proved its identity yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        !matches!(self.step, Step::SendFinished | Step::Complete)
    }

    /// The peer's transport parameters, once they have arrived.
    pub(crate) fn peer_params(&self) -> Option<&[u8]> {
        self.peer_params.as_deref()
    }

    /// Reads data of the peer.
    pub(crate) fn read(&mut self, data: &[u8]) {
        self.input.extend_from_slice(data);
        self.advance();
    }

    /// Handles messages that are whole, as far as the handshake expects them.
    fn advance(&mut self) {
        loop {
            let next = match self.step {
                Step::AwaitServerHello => Step::TakeHandshakeKeys,
                Step::AwaitCertificate => Step::SendFinished,
                Step::AwaitClientHello => Step::SendServerHello,
                Step::AwaitFinished => Step::Complete,
                _ => return,
            };
            let Some((params, size)) = parse(&self.input) else { return };
            self.input.drain(..size);
            if matches!(self.step, Step::AwaitCertificate | Step::AwaitClientHello) {
                self.peer_params = Some(params);
            }
            self.step = next;
        }
    }

    /// Writes the next message, if one is due. Returns the level whose keys hold from then on.
    pub(crate) fn write(&mut self, buffer: &mut Vec<u8>) -> Option<Level> {
        let (bytes, has_params, level, next) = match self.step {
            Step::SendClientHello => (CLIENT_HELLO, true, None, Step::AwaitServerHello),
            Step::TakeHandshakeKeys => (0, false, Some(HANDSHAKE), Step::AwaitCertificate),
            Step::SendFinished => (FINISHED, false, Some(ONE_RTT), Step::Complete),
            Step::SendServerHello => (SERVER_HELLO, false, Some(HANDSHAKE), Step::SendCertificate),
            Step::SendCertificate => (CERTIFICATE, true, Some(ONE_RTT), Step::AwaitFinished),
            _ => return None,
        };
        if bytes > 0 {
            write_message(if has_params { &self.params } else { &[] }, bytes, buffer);
        }
        self.step = next;
        self.advance();
        level
    }
}

fn write_message(params: &[u8], bytes: usize, buffer: &mut Vec<u8>) {
    let (end, bytes) = (buffer.len() + bytes.max(params.len() + 4), bytes.max(params.len() + 4));
    buffer.extend_from_slice(&(bytes as u16).to_be_bytes());
    buffer.extend_from_slice(&(params.len() as u16).to_be_bytes());
    buffer.extend_from_slice(params);
    buffer.resize(end, 0);
}

/// The parameters in the first message of `input`, once it is whole, and its size.
fn parse(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let number = |at: usize| Some(usize::from(u16::from_be_bytes([*input.get(at)?, *input.get(at + 1)?])));
    let (size, length) = (number(0)?, number(2)?);
    let params = input.get(..size)?.get(4..4 + length)?;
    Some((params.to_vec(), size))
}

/// Appends a tag of keys to `data`, or overwrites its last bytes with it.
pub(crate) fn seal(level: Level, data: &mut [u8]) {
    let length = data.len() - TAG;
    data[length..].fill(level);
}

/// The length of `data` without its tag; `None` if it is not a tag of these keys.
pub(crate) fn open(level: Level, data: &[u8]) -> Option<usize> {
    let length = data.len().checked_sub(TAG)?;
    data[length..].iter().all(|byte| *byte == level).then_some(length)
}

/// A hash of `data` in place of a keyed one.
pub(crate) fn sign(data: &[u8], signature: &mut [u8]) {
    for (index, byte) in (0_u8..).zip(signature) {
        *byte = (fnv1a(data.iter().copied().chain([index])) >> 24) as u8;
    }
}

/// Implements the traits for cryptography of the stack `$proto`. `$cid` is how they pass connection IDs, `$config` how they
/// pass configurations, `$path` the path of a packet, if it is an argument.
macro_rules! null_crypto {
    ($proto:ident, $cid:ty, $config:ty, [$($path:ty)?]) => {
        use $proto::crypto::{
            self, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
            Session, UnsupportedVersion,
        };
        use $proto::transport_parameters::TransportParameters;
        use $proto::{ConnectError, ConnectionId, Side, TransportError};
        use crate::null_crypto::{Handshake, INITIAL, Level, ONE_RTT, TAG, open, seal, sign};

        #[derive(Clone, Copy)]
        struct NullKey(Level);

        impl PacketKey for NullKey {
            fn encrypt(&self, $(_: $path,)? _packet: u64, buf: &mut [u8], _header_len: usize) {
                seal(self.0, buf);
            }

            fn decrypt(
                &self,
                $(_: $path,)?
                _packet: u64,
                _header: &[u8],
                payload: &mut bytes::BytesMut,
            ) -> Result<(), CryptoError> {
                payload.truncate(open(self.0, payload).ok_or(CryptoError)?);
                Ok(())
            }

            fn tag_len(&self) -> usize {
                TAG
            }

            fn confidentiality_limit(&self) -> u64 {
                u64::MAX
            }

            fn integrity_limit(&self) -> u64 {
                u64::MAX
            }
        }

        impl HeaderKey for NullKey {
            fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}
            fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}
            fn sample_size(&self) -> usize {
                16
            }
        }

        fn keys(level: Level) -> Keys {
            let key = NullKey(level);
            Keys {
                header: KeyPair { local: Box::new(key), remote: Box::new(key) },
                packet: KeyPair { local: Box::new(key), remote: Box::new(key) },
            }
        }

        struct NullSession {
            side: Side,
            handshake: Handshake,
            one_rtt: Level,
        }

        impl NullSession {
            fn start(side: Side, params: &TransportParameters) -> Box<dyn Session> {
                let mut bytes = Vec::new();
                params.write(&mut bytes);
                Box::new(Self { side, handshake: Handshake::new(side.is_client(), bytes), one_rtt: ONE_RTT })
            }
        }

        impl Session for NullSession {
            fn initial_keys(&self, _dst_cid: $cid, _side: Side) -> Keys {
                keys(INITIAL)
            }

            fn handshake_data(&self) -> Option<Box<dyn std::any::Any>> {
                None
            }

            fn peer_identity(&self) -> Option<Box<dyn std::any::Any>> {
                None
            }

            fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
                None
            }

            fn early_data_accepted(&self) -> Option<bool> {
                None
            }

            fn is_handshaking(&self) -> bool {
                self.handshake.is_handshaking()
            }

            fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
                self.handshake.read(buf);
                Ok(false)
            }

            fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
                let params = self.handshake.peer_params();
                params.map(|mut bytes| Ok(TransportParameters::read(self.side, &mut bytes)?)).transpose()
            }

            fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
                self.handshake.write(buf).map(keys)
            }

            fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
                self.one_rtt = self.one_rtt.wrapping_add(1);
                let key = NullKey(self.one_rtt);
                Some(KeyPair { local: Box::new(key), remote: Box::new(key) })
            }

            fn is_valid_retry(&self, _orig_dst_cid: $cid, _header: &[u8], _payload: &[u8]) -> bool {
                true
            }

            fn export_keying_material(
                &self,
                output: &mut [u8],
                _label: &[u8],
                _context: &[u8],
            ) -> Result<(), ExportKeyingMaterialError> {
                output.fill(0);
                Ok(())
            }
        }

        /// The configuration of either end.
        pub(super) struct NullConfig;

        impl crypto::ClientConfig for NullConfig {
            fn start_session(
                self: $config,
                _version: u32,
                _server_name: &str,
                params: &TransportParameters,
            ) -> Result<Box<dyn Session>, ConnectError> {
                Ok(NullSession::start(Side::Client, params))
            }
        }

        impl crypto::ServerConfig for NullConfig {
            fn initial_keys(&self, _version: u32, _dst_cid: $cid) -> Result<Keys, UnsupportedVersion> {
                Ok(keys(INITIAL))
            }

            fn retry_tag(&self, _version: u32, _orig_dst_cid: $cid, _packet: &[u8]) -> [u8; 16] {
                [0; 16]
            }

            fn start_session(self: $config, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
                NullSession::start(Side::Server, params)
            }
        }

        /// The key of stateless resets.
        pub(super) struct NullHmac;

        impl HmacKey for NullHmac {
            fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
                sign(data, signature_out);
            }

            fn signature_len(&self) -> usize {
                32
            }

            fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
                let mut expected = [0; 32];
                sign(data, &mut expected);
                if signature == expected { Ok(()) } else { Err(CryptoError) }
            }
        }

        /// Connection IDs by counting.
        pub(super) struct CountedIds(pub(super) u64);

        impl $proto::ConnectionIdGenerator for CountedIds {
            fn generate_cid(&mut self) -> ConnectionId {
                self.0 += 1;
                ConnectionId::new(&crate::options::connection_id(self.0))
            }

            fn cid_len(&self) -> usize {
                8
            }

            fn cid_lifetime(&self) -> Option<std::time::Duration> {
                None
            }
        }
    };
}
