//! sctp-proto, the SCTP of str0m and webrtc-rs, in Rust.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use peers::{Notice, Stack};
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier, ReliabilityType, ServerConfig, StreamEvent, Transmit,
    TransportConfig,
};
use workload::{LARGEST_MESSAGE, Options, PPID};

struct SctpProto {
    endpoint: Endpoint,
    transport: Arc<TransportConfig>,
    association: Option<(AssociationHandle, Association)>,
    packets: VecDeque<Vec<u8>>,
    notices: VecDeque<Notice>,
}

impl SctpProto {
    fn new(options: &Options) -> Self {
        let transport = Arc::new(
            TransportConfig::default()
                .with_max_send_message_size(LARGEST_MESSAGE as u32)
                .with_max_receive_message_size(LARGEST_MESSAGE as u32)
                .with_local_port(options.sctp_port)
                .with_remote_port(options.sctp_port),
        );
        let mut server = ServerConfig::new();
        server.transport = transport.clone();
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::new()), Some(Arc::new(server)));
        Self {
            endpoint,
            transport,
            association: None,
            packets: VecDeque::new(),
            notices: VecDeque::new(),
        }
    }

    fn queue(&mut self, transmit: Transmit) {
        if let Payload::RawEncode(packets) = transmit.payload {
            self.packets.extend(packets.iter().map(|packet| packet.to_vec()));
        }
    }

    fn sort_events(&mut self) {
        let Some((_, association)) = &mut self.association else { return };
        // Its events for the endpoint are left alone: `Association::shutdown` raises "drained" at
        // once, and the endpoint would then route no SHUTDOWN ACK to it any more.
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => self.notices.push_back(Notice::Connected),
                Event::HandshakeFailed { reason } | Event::AssociationLost { reason } => {
                    self.notices.push_back(Notice::Closed(Some(reason.to_string())));
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    let Ok(mut stream) = association.stream(id) else { continue };
                    while let Ok(Some(chunks)) = stream.read_sctp() {
                        let mut payload = vec![0; chunks.len()];
                        if chunks.read(&mut payload).is_ok() {
                            self.notices.push_back(Notice::Message { stream: id, payload });
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

impl Stack for SctpProto {
    const NAME: &'static str = "sctp-proto";

    fn connect(&mut self, _: Instant, remote: SocketAddr) {
        let mut client = ClientConfig::new();
        client.transport = self.transport.clone();
        match self.endpoint.connect(client, remote) {
            Ok(association) => self.association = Some(association),
            Err(error) => self.notices.push_back(Notice::Closed(Some(error.to_string()))),
        }
    }

    fn handle_input(&mut self, now: Instant, remote: SocketAddr, packet: &[u8]) {
        let packet = Bytes::copy_from_slice(packet);
        match self.endpoint.handle(now, remote, None, None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.association.get_or_insert((handle, association));
            }
            Some((handle, DatagramEvent::AssociationEvent(event))) => {
                if let Some((known, association)) = &mut self.association
                    && *known == handle
                {
                    association.handle_event(event);
                }
            }
            None => {}
        }
        // A message is read at once: unread ones count against the receive window.
        self.sort_events();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(now);
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.association.as_ref()?.1.poll_timeout()
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.packets.is_empty() {
            let of_endpoint = self.endpoint.poll_transmit();
            let transmit =
                of_endpoint.or_else(|| self.association.as_mut()?.1.poll_transmit(now))?;
            self.queue(transmit);
        }
        self.packets.pop_front()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.sort_events();
        self.notices.pop_front()
    }

    fn send(&mut self, stream: u16, is_unordered: bool, payload: Vec<u8>) -> Result<(), String> {
        let (_, association) = self.association.as_mut().ok_or("no association")?;
        let identifier = PayloadProtocolIdentifier::from(PPID);
        if association.stream(stream).is_err() {
            association.open_stream(stream, identifier).map_err(|error| error.to_string())?;
        }
        let mut stream = association.stream(stream).map_err(|error| error.to_string())?;
        stream
            .set_reliability_params(is_unordered, ReliabilityType::Reliable, 0)
            .and_then(|()| stream.write_sctp(&Bytes::from(payload), identifier))
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn queued(&mut self) -> usize {
        let Some((_, association)) = &mut self.association else { return 0 };
        let streams = association.stream_ids();
        let buffered = |id| association.stream(id).and_then(|stream| stream.buffered_amount());
        streams.into_iter().map(buffered).filter_map(Result::ok).sum()
    }

    fn is_acknowledged(&mut self) -> bool {
        self.queued() == 0
    }

    fn shutdown(&mut self) {
        if let Some((_, association)) = &mut self.association
            && let Err(error) = association.shutdown()
        {
            self.notices.push_back(Notice::Closed(Some(error.to_string())));
        }
    }
}

fn main() {
    let options = Options::from_environment();
    peers::run(&options, SctpProto::new(&options));
}
