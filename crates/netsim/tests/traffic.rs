//! Traces: the bundled ones compared with figures computed when they were captured, captures compared with their
//! traces, and other files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, TsResolution};
use rexmit_core::{Instant, Seed};
use rexmit_netsim::traffic::stats::Row;
use rexmit_netsim::traffic::trace::{Message, Sender, Trace, TraceError};

/// The rows computed from the traces by other software: packets, duration in s; payload mean, min, max; interarrival
/// mean, median, min, max, 1 %, 99 % in ms; packets/s, bits/s on the wire, bits/s of payload.
const EXPECTED: [(&str, Sender, &str); 8] = [
    (
        "bzflag-tcp",
        Sender::Client,
        "9506 2697.7 31 4 251 284.1 164.5 0.014 10200.1 0.618 1350.1 3.520 2738 879",
    ),
    (
        "bzflag-tcp",
        Sender::Server,
        "78224 2699.5 31 4 1021 34.5 14.9 0.007 1053.2 0.051 227.8 28.974 22599 7300",
    ),
    (
        "crossfire",
        Sender::Client,
        "2622 1198.7 21 16 225 457.9 237.5 0.007 9037.2 33.502 4249.2 2.184 1518 365",
    ),
    (
        "crossfire",
        Sender::Server,
        "26102 1199.8 34 1 1448 46.0 1.3 0.001 1552.2 0.008 124.2 21.752 17484 5998",
    ),
    (
        "ssh",
        Sender::Client,
        "2948 960.2 39 16 1448 325.9 168.2 0.019 21570.2 1.884 3907.8 3.068 2573 953",
    ),
    (
        "ssh",
        Sender::Server,
        "4236 960.0 312 28 1448 226.7 123.3 0.000 16177.8 0.001 3016.1 4.410 13350 11022",
    ),
    (
        "vnc",
        Sender::Client,
        "2540 209.7 13 1 120 82.6 24.0 0.015 1984.3 0.271 901.3 12.110 7676 1282",
    ),
    (
        "vnc",
        Sender::Server,
        "1328 209.6 720 1 1448 158.0 75.9 0.000 1984.6 0.000 994.7 6.330 39830 36488",
    ),
];

fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

fn assert_rows(trace: &Trace) {
    for (_, sender, expected) in EXPECTED.iter().filter(|row| row.0 == trace.name) {
        let row = Row::of_trace(trace, *sender).unwrap();
        let gaps = row.interarrival.unwrap();
        let values = [
            row.packets as f64,
            row.duration.as_secs_f64(),
            row.payload_mean,
            row.payload_min.into(),
            row.payload_max.into(),
            gaps.mean_ms,
            gaps.median_ms,
            gaps.min_ms,
            gaps.max_ms,
            gaps.p1_ms,
            gaps.p99_ms,
            row.packets_per_second,
            row.bits_per_second,
            row.payload_bits_per_second,
        ];
        for (place, (value, expected)) in values.iter().zip(expected.split(' ')).enumerate() {
            // The tolerance is half of the last printed digit.
            let decimals = expected.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let half_digit = 0.5 * 10f64.powi(-(decimals as i32));
            let expected: f64 = expected.parse().unwrap();
            assert!(
                (value - expected).abs() <= half_digit * 1.001,
                "{} {sender:?}, column {place}: {value}, not {expected}",
                trace.name
            );
        }
    }
}

#[test]
fn bundled_traces_have_the_figures_they_were_made_with() {
    for (name, flows) in [("bzflag-tcp", 9), ("crossfire", 4), ("ssh", 2), ("vnc", 1)] {
        let trace = Trace::open(&bundled(&format!("{name}.csv.gz"))).unwrap();
        assert_eq!((trace.name.as_str(), trace.flows.len()), (name, flows));
        assert_rows(&trace);
    }
}

#[test]
fn captures_give_the_rows_of_their_traces() {
    for name in ["ssh", "crossfire"] {
        let capture = Trace::open(&bundled(&format!("{name}.pcap.gz"))).unwrap();
        let trace = Trace::open(&bundled(&format!("{name}.csv.gz"))).unwrap();
        assert_rows(&capture);
        assert_eq!(capture, trace);
    }
}

#[test]
fn a_replay_sends_each_message_at_its_time() {
    let trace = Trace::open(&bundled("ssh.csv.gz")).unwrap();
    let start = Instant::from_millis(1000);
    let replay = trace.flows[0].replay(Sender::Server, start);
    assert_eq!(replay.len(), 2286);
    let first: Vec<_> = replay.take(2).collect();
    // The first rows of the file: 16034 and 19038 µs, 41 and 1088 bytes.
    let at = |micros| start + Duration::from_micros(micros);
    assert_eq!(first, [(at(16_034), 41), (at(19_038), 1088)]);
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    path
}

/// The error of a file with these bytes, without its folder.
fn error(name: &str, bytes: &[u8]) -> String {
    let path = file(name, bytes);
    let error = Trace::open(&path).unwrap_err().to_string();
    error.replace(&format!("{}/", path.parent().unwrap().display()), "")
}

#[test]
fn errors_name_the_file_and_the_line() {
    const HEAD: &str = "trace,flow_id,direction,time_us,payload_bytes\n";
    let csv = |rows: &str| error("t.csv", format!("{HEAD}{rows}").as_bytes());
    assert_eq!(
        csv("x,0,c2s,1,5\nx,0,c2s,soon,5\n"),
        "t.csv, line 3: field 3: invalid digit found in string"
    );
    assert!(csv("x,0,up,1,5\n").starts_with("t.csv, line 2: "), "{}", csv("x,0,up,1,5\n"));
    assert!(csv("x,0,c2s,1\n").starts_with("t.csv, line 2: "));
    assert!(csv("x,0,c2s,-1,5\n").starts_with("t.csv, line 2: "));
    assert_eq!(
        csv("x,0,c2s,18446744073709551615,5\n"),
        "t.csv, line 2: a time of more than 100 years"
    );
    assert_eq!(csv("x,0,c2s,1,0\n"), "t.csv, line 2: a message of 0 bytes");
    assert_eq!(
        csv("x,0,c2s,9,5\nx,1,c2s,3,5\nx,0,s2c,1,5\nx,0,c2s,8,5\n"),
        "t.csv, line 5: its time is before that of the row before, of the same flow and direction"
    );
    assert!(csv("").starts_with("t.csv has no message"));
    for content in [&b""[..], b"some text\n", b"\x7fELF\x02\xff\xfe\n"] {
        let said = error("t.csv", content);
        let wanted = "t.csv, line 1: neither a capture nor a trace, whose columns must be trace,";
        assert!(said.starts_with(wanted), "{said}");
    }
    assert!(error("t.csv", b"\x7fELF\x02\x01\n\xff\xfe").starts_with("t.csv, line 1: "));
    let missing = Trace::open(Path::new("/nonexistent/t.csv")).unwrap_err();
    assert!(matches!(missing, TraceError::Unreadable { .. }));
    assert!(missing.to_string().starts_with("cannot read /nonexistent/t.csv: "));
    // A gzip file that is cut off.
    let whole = std::fs::read(bundled("vnc.csv.gz")).unwrap();
    assert!(error("cut.csv.gz", &whole[..5000]).starts_with("cannot read cut.csv.gz: "));
}

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// A capture of frames that are a millisecond apart, and of which at most `snaplen` bytes are stored.
fn capture(frames: &[Vec<u8>], snaplen: usize) -> Vec<u8> {
    let header = PcapHeader {
        datalink: DataLink::RAW,
        ts_resolution: TsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (n, frame) in (0..).zip(frames) {
        let kept = &frame[..frame.len().min(snaplen)];
        let packet = PcapPacket::new(Duration::from_millis(n), frame.len() as u32, kept);
        writer.write_packet(&packet).unwrap();
    }
    writer.into_writer()
}

/// A TCP segment from `source` to the other end.
fn tcp(source: [u8; 4], syn: bool, sequence: u32, payload: usize) -> Vec<u8> {
    let is_client = source == CLIENT;
    let (destination, ports) = if is_client { (SERVER, (4000, 22)) } else { (CLIENT, (22, 4000)) };
    let mut builder =
        PacketBuilder::ipv4(source, destination, 64).tcp(ports.0, ports.1, sequence, 1000);
    if syn {
        builder = builder.syn();
    }
    if !(syn && is_client) {
        builder = builder.ack(1);
    }
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![0; payload]).unwrap();
    frame
}

fn messages(messages: &[(u64, u32)]) -> Vec<Message> {
    let message = |&(ms, bytes)| Message { at: Duration::from_millis(ms), bytes };
    messages.iter().map(message).collect()
}

#[test]
fn of_a_capture_only_new_payload_counts() {
    let isn = u32::MAX - 60; // the numbers wrap within the first message
    let at = |offset: u32| isn.wrapping_add(1).wrapping_add(offset);
    let frames = [
        tcp(CLIENT, true, isn, 0),
        tcp(SERVER, true, 7, 0),
        tcp(CLIENT, false, at(0), 100), // 2 ms
        tcp(SERVER, false, 8, 0),
        tcp(CLIENT, false, at(0), 100),  // a retransmission
        tcp(CLIENT, false, at(99), 1),   // a keep-alive
        tcp(CLIENT, false, at(150), 50), // 6 ms; the 50 bytes before are late
        tcp(CLIENT, false, at(50), 100), // 7 ms; 50 of them are new
        tcp(SERVER, false, 8, 1400),     // 8 ms
        tcp(CLIENT, true, 5, 0),         // the same ports again: 9 ms
        tcp(CLIENT, false, 6, 30),
    ];
    let path = file("tcp.pcap", &capture(&frames, 60));
    let trace = Trace::open(&path).unwrap();
    assert_eq!((trace.name.as_str(), trace.flows.len()), ("tcp", 2));
    assert_eq!(trace.flows[0].client, messages(&[(2, 100), (6, 50), (7, 50)]));
    assert_eq!(trace.flows[0].server, messages(&[(8, 1400)]));
    assert_eq!(trace.flows[1].client, messages(&[(1, 30)]));
    assert_eq!((trace.flows[0].id, trace.flows[1].id), (0, 1));
}

/// An SCTP packet with DATA chunks of these TSNs and payload lengths.
fn sctp(chunks: &[(u32, usize)]) -> Vec<u8> {
    let mut bytes = vec![0x13, 0x89, 0x13, 0x8A, 0, 0, 0, 1, 0, 0, 0, 0];
    for &(tsn, payload) in chunks {
        bytes.extend([0, 3]); // DATA, not fragmented
        bytes.extend((16 + payload as u16).to_be_bytes());
        bytes.extend(tsn.to_be_bytes());
        bytes.extend(vec![0; 8 + payload.next_multiple_of(4)]);
    }
    bytes
}

#[test]
fn udp_and_sctp_have_messages_too() {
    let udp = |ports: (u16, u16), payload: &[u8]| {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(ports.0, ports.1);
        builder.write(&mut frame, payload).unwrap();
        frame
    };
    let over_ip = |payload: &[u8]| {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ipv4(CLIENT, SERVER, 64);
        builder.write(&mut frame, etherparse::IpNumber::SCTP, payload).unwrap();
        frame
    };
    let frames = [
        udp((53000, 53), &[0; 30]),
        over_ip(&sctp(&[(10, 5), (11, 6)])),
        over_ip(&sctp(&[(10, 5), (12, 7)])), // the first is a retransmission
        udp((9899, 9899), &sctp(&[(20, 100)])),
        over_ip(&[1, 2, 3]),
        vec![0x60; 3],
        vec![],
    ];
    let path = file("mixed.pcap", &capture(&frames, 2000));
    let trace = Trace::open(&path).unwrap();
    let sent: Vec<_> = trace.flows.iter().map(|flow| flow.client.clone()).collect();
    let expected = [&[(0, 30)][..], &[(0, 11), (1, 7)], &[(0, 100)]];
    assert_eq!(sent, expected.map(messages));
}

/// As [`sctp`], with an I-DATA chunk (RFC 8260 §2.1) and the checksum.
fn sctp_with_checksum(tsn: u32, payload: u8) -> Vec<u8> {
    let mut bytes = sctp(&[]);
    bytes.extend([64, 3, 0, 20 + payload]);
    bytes.extend(tsn.to_be_bytes());
    bytes.extend(vec![0; 12 + usize::from(payload).next_multiple_of(4)]);
    let checksum = rexmit_core::checksum::crc32c(&bytes);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// At other UDP ports than 9899, the checksum decides.
#[test]
fn sctp_in_udp_is_found_at_any_port() {
    let udp = |port: u16, payload: &[u8]| {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ipv4(CLIENT, SERVER, 64).udp(port, 7000);
        builder.write(&mut frame, payload).unwrap();
        frame
    };
    let packet = sctp_with_checksum(10, 30);
    let mut damaged = packet.clone();
    damaged[30] ^= 1;
    let frames = [udp(4000, &packet), udp(4000, &packet), udp(4001, &packet), udp(4002, &damaged)];
    let trace = Trace::open(&file("any-port.pcap", &capture(&frames, 2000))).unwrap();
    let sent: Vec<_> = trace.flows.iter().map(|flow| flow.client.clone()).collect();
    // The retransmission does not count. 64 bytes: a datagram of something else.
    let expected = [&[(0, 30)][..], &[(0, 30)], &[(0, 64)]];
    assert_eq!(sent, expected.map(messages));
}

/// The same as pcapng, with the clock `resolution` (`if_tsresol`); microseconds if that is missing.
fn capture_ng(frames: &[Vec<u8>], resolution: Option<u8>) -> Vec<u8> {
    let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
    let options = resolution.map(InterfaceDescriptionOption::IfTsResol).into_iter().collect();
    let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
    writer.write_pcapng_block(interface).unwrap();
    for (n, frame) in (0..).zip(frames) {
        // The library writes nanoseconds as ticks.
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(n * 512),
            original_len: frame.len() as u32,
            data: frame.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(packet).unwrap();
    }
    writer.into_inner()
}

#[test]
fn times_of_pcapng_are_those_of_the_clock_of_the_interface() {
    let frames = [tcp(CLIENT, true, 0, 0), tcp(CLIENT, false, 1, 10)];
    for (resolution, nanos) in [(Some(0x80 + 10), 500_000_000), (None, 512_000), (Some(9), 512)] {
        let path = file("clock.pcapng", &capture_ng(&frames, resolution));
        let trace = Trace::open(&path).unwrap();
        let expected = Message { at: Duration::from_nanos(nanos), bytes: 10 };
        assert_eq!(trace.flows[0].client, [expected], "{resolution:?}");
    }
}

#[test]
fn damaged_captures_are_errors_or_less_but_never_panic() {
    let frames: Vec<_> = (0..20)
        .map(|n| tcp(CLIENT, false, n * 40, 40))
        .chain((0..20).map(|n| tcp(SERVER, false, n * 40, 40)))
        .collect();
    let whole = capture(&frames, 60);
    let cut = file("cut.pcap", &whole[..whole.len() - 7]);
    let error = Trace::open(&cut).unwrap_err();
    assert!(matches!(error, TraceError::BadCapture { packet: 40, .. }), "{error}");
    assert!(error.to_string().ends_with("packet 40: the file ends within it"), "{error}");
    let mut rng = Seed::from_u64(1).rng();
    for whole in [whole, capture_ng(&frames, Some(9))] {
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + rng.below(8) {
                // The first four bytes, which identify the format, stay as they are.
                let place = 4 + rng.below(bytes.len() as u64 - 4) as usize;
                bytes[place] = rng.u32() as u8;
            }
            bytes.truncate(1 + rng.below(2 * whole.len() as u64) as usize);
            let _ = Trace::open(&file("damaged.pcap", &bytes));
        }
    }
}
