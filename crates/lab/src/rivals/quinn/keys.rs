//! A handshake without cryptography: the part of TLS that QUIC needs to establish a connection.
//!
//! The client sends its transport parameters, the server replies with its own, and both finish. Encryption leaves the
//! data unchanged. Tags are zeros as long as those of AES-GCM, so that packets have realistic lengths.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Bytes of an AEAD tag (RFC 9001 §5.3).
const TAG_BYTES: usize = 16;
/// The last handshake message of each side.
const FINISHED: &[u8] = b"finished";

/// Keys that leave the data unchanged.
#[derive(Clone, Copy)]
pub(super) struct Open;

impl Open {
    fn keys() -> Keys {
        Keys {
            header: KeyPair { local: Box::new(Self), remote: Box::new(Self) },
            packet: Self::pair(),
        }
    }

    fn pair() -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: Box::new(Self), remote: Box::new(Self) }
    }
}

impl PacketKey for Open {
    fn encrypt(&self, _: u64, packet: &mut [u8], _: usize) {
        let tag = packet.len() - TAG_BYTES;
        packet[tag..].fill(0);
    }

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Open {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    /// The sample size of AES (RFC 9001 §5.4.3).
    fn sample_size(&self) -> usize {
        16
    }
}

impl HmacKey for Open {
    /// Fills the tag so that it differs from every stateless reset token: a packet that ends with such a token is
    /// treated as a stateless reset (RFC 9000 §10.3).
    fn sign(&self, _: &[u8], signature: &mut [u8]) {
        signature.fill(1);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for Open {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for Open {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

impl ClientConfig for Open {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Handshake::new(Side::Client, parameters)))
    }
}

impl ServerConfig for Open {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(Self::keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(Handshake::new(Side::Server, parameters))
    }
}

/// The state of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The own transport parameters must be sent.
    Hello,
    /// The peer's parameters are awaited (client), or the handshake keys must be installed
    /// (server).
    Answer,
    /// The last message must be sent.
    Finish,
    /// The handshake is complete.
    Done,
}

struct Handshake {
    side: Side,
    own: Vec<u8>,
    stage: Stage,
    /// The received part of an incomplete message.
    read: Vec<u8>,
    peer: Option<TransportParameters>,
    has_peer_finished: bool,
}

impl Handshake {
    fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut written = Vec::new();
        parameters.write(&mut written);
        let mut own = (written.len() as u32).to_be_bytes().to_vec();
        own.extend(written);
        Self {
            side,
            own,
            stage: Stage::Hello,
            read: Vec::new(),
            peer: None,
            has_peer_finished: false,
        }
    }

    /// The peer's parameters, once they are complete.
    fn read_parameters(&mut self) -> Result<(), TransportError> {
        let Some((len, rest)) = self.read.split_first_chunk() else { return Ok(()) };
        let len = u32::from_be_bytes(*len) as usize;
        let Some(whole) = rest.get(..len) else { return Ok(()) };
        let read = TransportParameters::read(self.side, &mut Cursor::new(whole));
        self.peer = Some(read.map_err(|_| refused("parameters that cannot be read"))?);
        self.read.drain(..4 + len);
        Ok(())
    }
}

fn refused(why: &str) -> TransportError {
    let reason = why.to_owned();
    TransportError { code: TransportErrorCode::PROTOCOL_VIOLATION, frame: None, reason }
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        Open::keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        !self.has_peer_finished || self.stage != Stage::Done
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.read.extend_from_slice(bytes);
        if self.peer.is_none() {
            self.read_parameters()?;
        }
        if self.peer.is_some() && self.read.starts_with(FINISHED) {
            self.has_peer_finished = true;
            self.read.drain(..FINISHED.len());
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    /// As in TLS, the server has all keys after its first flight, the client after its second one.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let knows_peer = self.peer.is_some();
        match (self.side, self.stage) {
            (Side::Client, Stage::Hello) => {
                out.extend_from_slice(&self.own);
                self.stage = Stage::Answer;
                None
            }
            (Side::Server, Stage::Hello) if knows_peer => {
                out.extend_from_slice(&self.own);
                self.stage = Stage::Finish;
                Some(Open::keys())
            }
            (Side::Client, Stage::Answer) if knows_peer => {
                self.stage = Stage::Finish;
                Some(Open::keys())
            }
            (Side::Client, Stage::Finish) if !self.has_peer_finished => None,
            (_, Stage::Finish) => {
                out.extend_from_slice(FINISHED);
                self.stage = Stage::Done;
                Some(Open::keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(Open::pair())
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
