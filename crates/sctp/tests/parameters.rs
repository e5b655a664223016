//! Parameters of INIT and INIT ACK: addresses, and unknown parameters (RFC 9260 §3.2.1, §3.2.2,
//! §5.1.2).

mod kit;

use std::net::IpAddr;

use kit::*;
use rexmit_sctp::{CloseReason, Event, MAX_ADDRESSES};

const UNKNOWN: [u16; 4] = [0x0F01, 0x4F02, 0x8F03, 0xCF04];

/// A parameter of an unknown type, whose value is followed by padding that its length does not count.
fn unknown_param(kind: u16) -> wire::RawParam<'static> {
    let bytes: &'static [u8] = match kind {
        0x0F01 => &[0x0F, 1, 0, 5, 9],
        0x4F02 => &[0x4F, 2, 0, 5, 9],
        0x8F03 => &[0x8F, 3, 0, 5, 9],
        _ => &[0xCF, 4, 0, 5, 9],
    };
    wire::RawParam { kind, value: &bytes[4..], bytes }
}

/// The Unrecognized Parameter parameters of an INIT ACK: the types that they quote.
fn reported_in(ack: &wire::Init<'_>) -> Vec<u16> {
    let quoted = |param: wire::RawParam<'_>| match param.decode() {
        Ok(Param::UnrecognizedParameter(bytes)) => Some(quoted_kinds(bytes)),
        _ => None,
    };
    ack.params().flatten().filter_map(quoted).flatten().collect()
}

fn quoted_kinds(bytes: &[u8]) -> Vec<u16> {
    wire::Params::new(bytes)
        .flatten()
        .map(|param| {
            assert_eq!(param.bytes, unknown_param(param.kind).bytes, "quoted whole");
            param.kind
        })
        .collect()
}

/// The addresses of the association's peer.
fn paths(s: &Script) -> Vec<IpAddr> {
    s.statistics().paths.iter().map(|path| path.remote.ip()).collect()
}

/// RFC 9260 §3.2.1, §3.2.2: the two high bits of an unknown parameter's type decide whether INIT ACK reports it, and
/// whether later parameters are read.
#[test]
fn unknown_parameters_of_init_are_treated_by_their_two_high_bits() {
    for (kind, is_reported, goes_on) in [
        (UNKNOWN[0], false, false),
        (UNKNOWN[1], true, false),
        (UNKNOWN[2], false, true),
        (UNKNOWN[3], true, true),
    ] {
        let mut s = Script::server();
        s.peer_writes_under(0, |p| {
            p.init(&peer_init(PEER_TAG), |params| {
                params.push_raw(&unknown_param(kind));
                params.push(&address(9, 0).ip().into());
            })
        });
        let (ack_tag, cookie, reported) = {
            let sent = s.next_packet();
            let &[InitAck(ack)] = &sent.chunks()[..] else { panic!("no INIT ACK: {sent:?}") };
            (ack.initiate_tag, cookie_of(&ack), reported_in(&ack))
        };
        let expected = if is_reported { vec![kind] } else { vec![] };
        assert_eq!(reported, expected, "{kind:#x}");
        s.peer_sends_under(ack_tag, [CookieEcho(&cookie)]);
        expect_packet!(s, [CookieAck]);
        expect_event!(s, Event::Connected { .. });
        assert_eq!(paths(&s).contains(&address(9, 0).ip()), goes_on, "{kind:#x}");
        if goes_on {
            s.take_probe();
        }
    }
}

/// RFC 9260 §3.2.2, §3.3.10.8: unknown parameters of INIT ACK are reported in an ERROR after COOKIE ECHO.
#[test]
fn unknown_parameters_of_init_ack_are_reported_with_cookie_echo() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            params.push_raw(&unknown_param(UNKNOWN[3]));
            params.push_raw(&unknown_param(UNKNOWN[2]));
            params.push(&Param::StateCookie(COOKIE));
            params.push_raw(&unknown_param(UNKNOWN[1]));
            params.push_raw(&unknown_param(UNKNOWN[3]));
        })
    });
    expect_packet!(s, [CookieEcho(COOKIE), Error { causes }] if {
        match causes.flatten().next() {
            Some(Cause::UnrecognizedParameters(quoted)) => {
                quoted_kinds(quoted) == [UNKNOWN[3], UNKNOWN[1]]
            }
            _ => false,
        }
    });
}

/// RFC 9260 §3.2.1: parameters after an unknown one that ends the reading are ignored, here the cookie.
#[test]
fn cookie_after_a_parameter_that_stops_the_reading_is_missing() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            params.push_raw(&unknown_param(UNKNOWN[0]));
            params.push(&Param::StateCookie(COOKIE));
        })
    });
    expect_packet!(s, [Abort { .. }]);
}

/// The limit of reported parameters (512 bytes): an INIT full of unknown parameters is still answered.
#[test]
fn report_of_unknown_parameters_is_limited() {
    let mut s = Script::server();
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            for _ in 0..1_000 {
                params.push_raw(&unknown_param(UNKNOWN[3]));
            }
        })
    });
    expect_packet!(s, [InitAck(ack)] if reported_in(&ack).len() == 512 / 8);
}

/// RFC 9260 §5.1.2 B: a host name in INIT is answered with an ABORT that quotes it.
#[test]
fn host_name_in_init_is_refused() {
    let mut s = Script::server();
    let name = Param::HostName(b"host.example\0");
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&name);
        })
    });
    expect_packet!(s, [Abort { t_bit: false, causes }] if match causes.flatten().next() {
        Some(Cause::UnresolvableAddress(quoted)) => {
            wire::Params::new(quoted).next().unwrap().unwrap().decode() == Ok(name)
        }
        _ => false,
    });
}

/// RFC 9260 §5.1.2 B: the same for INIT ACK, which also ends the attempt.
#[test]
fn host_name_in_init_ack_ends_the_attempt() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            params.push(&Param::StateCookie(COOKIE));
            params.push(&Param::HostName(b"host.example\0"));
        })
    });
    expect_packet!(s, [Abort { t_bit: false, causes }] if {
        matches!(causes.flatten().next(), Some(Cause::UnresolvableAddress(_)))
    });
    expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
}

/// RFC 9260 §5.1.2 A: without address parameters the source address is the only one.
#[test]
fn source_address_is_the_only_one_by_default() {
    assert_eq!(paths(&Script::established_server()), [address(2, 0).ip()]);
    assert_eq!(paths(&Script::established_client()), [address(2, 0).ip()]);
}

/// RFC 9260 §5.1.2 C: addresses of both families are recorded in addition to the source, each once; impossible ones are
/// not.
#[test]
fn addresses_of_the_peer_are_recorded() {
    let v6: IpAddr = "2001:db8::9".parse().unwrap();
    let reported = [address(8, 0).ip(), v6, address(2, 0).ip(), address(8, 0).ip()];
    let useless: [IpAddr; 2] = ["0.0.0.0".parse().unwrap(), "224.0.0.1".parse().unwrap()];
    let expected = [address(2, 0).ip(), address(8, 0).ip(), v6];
    let push = |params: &mut ParamsWriter<'_, '_>| {
        for address in reported.into_iter().chain(useless) {
            params.push(&address.into());
        }
    };
    let mut s = Script::server();
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), push));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    s.take_probe();
    assert_eq!(paths(&s), expected);
    assert_eq!(s.endpoint.endpoint_statistics().addresses_refused, 3);
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            push(params);
            params.push(&Param::StateCookie(COOKIE));
        })
    });
    expect_packet!(s, [CookieEcho(_)]);
    assert_eq!(paths(&s), expected);
    assert_eq!(s.endpoint.endpoint_statistics().addresses_refused, 3);
}

/// The limit `MAX_ADDRESSES`: more are not recorded.
#[test]
fn addresses_of_the_peer_are_limited() {
    let mut s = Script::server();
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            for host in 100..200 {
                params.push(&address(host, 0).ip().into());
            }
        })
    });
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    s.events();
    s.take_probe();
    assert_eq!(paths(&s).len(), 1 + MAX_ADDRESSES);
    assert_eq!(s.endpoint.endpoint_statistics().addresses_refused, 100 - MAX_ADDRESSES as u64);
}

/// RFC 9260 §5.1.2 D: an INIT belongs to the association of any address in it.
#[test]
fn init_belongs_to_the_association_of_any_of_its_addresses() {
    let mut s = Script::established_server_over_ip();
    let known = std::mem::replace(&mut s.peer.route.remote, address(3, 0));
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&known.ip().into());
        })
    });
    expect_packet!(s, [Abort { causes, .. }] if {
        matches!(causes.flatten().next(), Some(Cause::RestartWithNewAddresses(_)))
    });
}

/// RFC 9260 §5.1.2 D, C: an INIT ACK from another address of the peer is accepted if it lists the address that the INIT
/// was sent to; its source is recorded.
#[test]
fn init_ack_may_come_from_another_address() {
    let mut s = Script::client();
    s.take_init();
    let named = std::mem::replace(&mut s.peer.route.remote, address(3, 9899));
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            params.push(&Param::StateCookie(COOKIE));
            params.push(&named.ip().into());
        })
    });
    let sent = s.next_packet();
    assert_eq!((sent.chunks(), sent.route.remote), (vec![CookieEcho(COOKIE)], named));
    assert_eq!(paths(&s), [named.ip(), address(3, 0).ip()]);
}

/// RFC 9260 §5.1.2: address types never cause an error report, and neither does ECN.
#[test]
fn supported_address_types_and_ecn_are_not_reported() {
    let mut s = Script::server();
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            let types = [wire::param_kind::IPV6, 99];
            params.push(&Param::SupportedAddressTypes(types.as_slice().into()));
            params.push(&Param::EcnCapable);
        })
    });
    expect_packet!(s, [InitAck(ack)] if reported_in(&ack).is_empty());
}

/// RFC 9260 §5.1.2, §3.3.2.1: own addresses are reported only if the application names them.
#[test]
fn own_addresses_are_listed_if_configured() {
    let own: [IpAddr; 2] = [address(1, 0).ip(), "2001:db8::1".parse().unwrap()];
    let reported = |init: &wire::Init<'_>| -> Vec<IpAddr> {
        let address = |param: wire::RawParam<'_>| match param.decode() {
            Ok(Param::Ipv4(address)) => Some(IpAddr::V4(address)),
            Ok(Param::Ipv6(address)) => Some(IpAddr::V6(address)),
            _ => None,
        };
        init.params().flatten().filter_map(address).collect()
    };
    let mut s = Script::with(|config, _| config.addresses = own.to_vec());
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
    expect_packet!(s, [InitAck(ack)] if reported(&ack) == own);
    s.connect();
    expect_packet!(s, tag 0, [Init(init)] if reported(&init) == own);
}

/// RFC 3758 §3.3, RFC 6525 §5.1.1, RFC 5061 §4.2.7: disabled extensions are not offered.
#[test]
fn extensions_that_are_switched_off_are_not_offered() {
    let kinds = |init: &wire::Init<'_>| -> Vec<u16> {
        init.params().flatten().map(|param| param.kind).collect()
    };
    let mut s = Script::client_with(|_, association| {
        association.extensions.partial_reliability = false;
        association.extensions.stream_reset = false;
        association.extensions.dynamic_addresses = false;
    });
    expect_packet!(s, tag 0, [Init(init)] if kinds(&init).is_empty());
}
