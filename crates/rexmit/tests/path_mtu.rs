//! Path MTU discovery between two machines (network namespaces). A cable drops packets that are larger than the MTU
//! of its far end, without a report, and refuses those that are larger than that of the near end. A router between them
//! reports packets that are too large for its link.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use common::{in_time, netns};
use rexmit::tun::NetNamespace;
use rexmit::{
    Association, AssociationConfig, Encryption, Endpoint, EndpointConfig, Identity,
    OutboundMessage, PathMtuConfig, PathMtuState, TimeLimits, Trust,
};

const ADDRESSES: [[&str; 2]; 2] = [["10.133.0.1", "fd00:133::1"], ["10.133.0.2", "fd00:133::2"]];
const MESSAGE_BYTES: usize = 50_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Carrier {
    Udp,
    UdpV6,
    Dtls,
    Raw,
}

impl Carrier {
    /// Bytes of an IP packet below SCTP, those of a record of DTLS included.
    const fn below(self) -> usize {
        match self {
            Self::Udp => 28,
            Self::UdpV6 => 48,
            Self::Dtls => 50,
            Self::Raw => 20,
        }
    }

    fn address(self, end: usize) -> SocketAddr {
        let ip = ADDRESSES[end][usize::from(self == Self::UdpV6)];
        SocketAddr::new(ip.parse().unwrap(), if self == Self::Raw { 0 } else { 9899 })
    }

    fn endpoint(self, namespaces: &[NetNamespace; 2], end: usize, max_mtu: usize) -> Endpoint {
        let path_mtu = PathMtuConfig::default().max_mtu(max_mtu as u16);
        self.endpoint_at(&namespaces[end], self.address(end), path_mtu)
    }

    fn endpoint_at(
        self,
        namespace: &NetNamespace,
        address: SocketAddr,
        path_mtu: PathMtuConfig,
    ) -> Endpoint {
        let association = AssociationConfig::rack().path_mtu(Some(path_mtu));
        let config = EndpointConfig::default().accept(true).association(Arc::new(association));
        let runtime = tokio::runtime::Handle::current();
        let bind = || {
            let _context = runtime.enter();
            match self {
                Self::Udp | Self::UdpV6 => Endpoint::bind_unencrypted(address, config),
                Self::Raw => Endpoint::bind_raw(address.ip(), config),
                Self::Dtls => {
                    let identity = Identity::generate().unwrap();
                    Endpoint::bind(address, config, Encryption::new(identity, Trust::anyone()))
                }
            }
        };
        let endpoint = namespace.run(bind).expect("the namespace").expect("an endpoint");
        endpoint.with_time_limits(TimeLimits::NONE)
    }
}

async fn transfer(ours: &Association, theirs: &Association, messages: usize) {
    let send = async {
        for number in 0..messages {
            let message = OutboundMessage::new(0, vec![number as u8; MESSAGE_BYTES]);
            ours.send(message).await.expect("it is sent");
        }
    };
    let receive = async {
        for number in 0..messages {
            let message = theirs.recv().await.expect("a message");
            assert!(message.payload == vec![number as u8; MESSAGE_BYTES], "message {number}");
        }
    };
    in_time(async { tokio::join!(send, receive) }).await;
}

/// Transfers data until a search has found the size of an IP packet of `mtu` bytes.
async fn transfer_until(ours: &Association, theirs: &Association, (mtu, below): (usize, usize)) {
    let found = async {
        loop {
            transfer(ours, theirs, 10).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let path = ours.statistics().paths.remove(0);
            if path.mtu_discovery == PathMtuState::SearchComplete
                && path.max_packet_bytes == (mtu - below) & !3
            {
                return;
            }
        }
    };
    in_time(found).await;
}

async fn associate([client, server]: &[Endpoint; 2], remote: SocketAddr) -> [Association; 2] {
    let connect = async { client.connect(remote, server.port()).await.expect("an answer") };
    let accept = async { server.accept().await.expect("an association") };
    in_time(async { tokio::join!(connect, accept) }).await.into()
}

/// Sets the MTU of the cable's end at `end`.
fn set_mtu(namespaces: &[NetNamespace; 2], end: usize, mtu: usize) {
    netns::ip(&namespaces[end], &format!("link set cable mtu {mtu}"));
}

/// Tests the search over a path with this MTU, which then becomes smaller at one end, `shrinking`.
async fn measure(carrier: Carrier, mtu: usize, shrinking: Option<(usize, usize)>) {
    let lists = ADDRESSES.map(|[v4, v6]| [format!("{v4}/24"), format!("{v6}/64")]);
    let [near, far] = &lists;
    let addresses = [&[&near[0][..], &near[1][..]][..], &[&far[0][..], &far[1][..]][..]];
    let Some(namespaces) = netns::cabled(addresses) else { return };
    // Batches that are cut behind the cable would not be measured.
    netns::ip(&namespaces[0], "link set cable gso_max_segs 1");
    (0..2).for_each(|end| set_mtu(&namespaces, end, mtu));
    let ends = [0, 1].map(|end| carrier.endpoint(&namespaces, end, mtu));
    let [ours, theirs] = associate(&ends, carrier.address(1)).await;
    transfer_until(&ours, &theirs, (mtu, carrier.below())).await;
    if let Some((end, mtu)) = shrinking {
        set_mtu(&namespaces, end, mtu);
        transfer_until(&ours, &theirs, (mtu, carrier.below())).await;
    }
}

const NEAR: usize = 0;
const FAR: usize = 1;

#[tokio::test]
async fn an_mtu_black_hole_over_udp_is_detected() {
    measure(Carrier::Udp, 1500, Some((FAR, 1400))).await;
}

/// The system refuses packets that are larger (EMSGSIZE).
#[tokio::test]
async fn a_device_with_a_smaller_mtu_is_found_over_udp() {
    measure(Carrier::UdpV6, 1500, Some((NEAR, 1400))).await;
}

#[tokio::test]
async fn an_mtu_black_hole_under_dtls_is_detected() {
    measure(Carrier::Dtls, 1500, Some((FAR, 1400))).await;
}

#[tokio::test]
async fn a_device_with_a_smaller_mtu_is_found_directly_over_ip() {
    measure(Carrier::Raw, 1500, Some((NEAR, 1400))).await;
}

#[tokio::test]
async fn jumbo_frames_are_found() {
    for carrier in [Carrier::Udp, Carrier::Dtls, Carrier::Raw] {
        measure(carrier, 9000, None).await;
    }
}

/// Two machines in different networks, with a router between them whose link to the second is called `far`.
struct Routed {
    machines: [NetNamespace; 2],
    router: NetNamespace,
    addresses: [[&'static str; 2]; 2],
}

fn routed() -> Option<Routed> {
    let near = ["10.133.0.1", "fd00:133::1"];
    let far = ["10.134.0.2", "fd00:134::2"];
    let of_near: [&[&str]; 2] =
        [&["10.133.0.1/24", "fd00:133::1/64"], &["10.133.0.2/24", "fd00:133::2/64"]];
    let [first, router] = netns::cabled(of_near)?;
    let second = netns::namespace()?;
    netns::ip(&router, &format!("link add far type veth peer name cable netns {}", second.path()));
    for (namespace, link, [v4, v6]) in [
        (&router, "far", ["10.134.0.1", "fd00:134::1"]),
        (&second, "cable", ["10.134.0.2", "fd00:134::2"]),
    ] {
        netns::ip(namespace, &format!("address add {v4}/24 dev {link}"));
        netns::ip(namespace, &format!("address add {v6}/64 dev {link} nodad"));
        netns::ip(namespace, &format!("link set {link} up"));
    }
    for (namespace, [v4, v6]) in
        [(&first, ["10.133.0.2", "fd00:133::2"]), (&second, ["10.134.0.1", "fd00:134::1"])]
    {
        netns::ip(namespace, &format!("route add default via {v4}"));
        netns::ip(namespace, &format!("-6 route add default via {v6}"));
    }
    let forward = || {
        for switch in ["ipv4/conf/all/forwarding", "ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/net/{switch}"), "1").expect("it forwards");
        }
    };
    router.run(forward).expect("the namespace");
    Some(Routed { machines: [first, second], router, addresses: [near, far] })
}

/// Without reports a black hole would be left after 255 lost probes, a second or more each.
#[tokio::test]
async fn a_report_of_a_router_is_used_at_once() {
    for carrier in [Carrier::Udp, Carrier::UdpV6, Carrier::Raw] {
        let Some(Routed { machines, router, addresses }) = routed() else { return };
        netns::ip(&machines[0], "link set cable gso_max_segs 1");
        let at = |end: usize| {
            let ip = addresses[end][usize::from(carrier == Carrier::UdpV6)].parse().unwrap();
            SocketAddr::new(ip, carrier.address(end).port())
        };
        let path_mtu = PathMtuConfig::default().max_mtu(1500).max_probes(255);
        let ends = [0, 1].map(|end| carrier.endpoint_at(&machines[end], at(end), path_mtu.clone()));
        let [ours, theirs] = associate(&ends, at(1)).await;
        transfer_until(&ours, &theirs, (1500, carrier.below())).await;
        netns::ip(&router, "link set far mtu 1400");
        transfer_until(&ours, &theirs, (1400, carrier.below())).await;
    }
}
