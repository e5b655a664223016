//! An endpoint follows the addresses of its host (RFC 5061), between two network namespaces.

#![cfg(target_os = "linux")]

mod common;

use std::net::{IpAddr, SocketAddr};

use common::{client_config, in_time, netns, server_config};
use rexmit::tun::NetNamespace;
use rexmit::{AddressChange, Association, Endpoint, Event, PathState, TimeLimits};

const SERVER: &str = "10.133.0.2";
const FIRST: &str = "10.133.0.1";
const SECOND: &str = "10.134.0.1";
const SCTP_PORT: u16 = 5000;

fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

/// Two hosts with a cable between them; the first may have [`FIRST`] and [`SECOND`], and reaches the other by either.
fn hosts() -> Option<[NetNamespace; 2]> {
    let (first, server) = (format!("{FIRST}/24"), format!("{SERVER}/24"));
    let hosts = netns::cabled([&[&first], &[&server]])?;
    netns::ip(&hosts[0], "link set lo up");
    netns::ip(&hosts[0], &format!("route add {SERVER}/32 dev cable"));
    netns::ip(&hosts[1], "route add 10.134.0.0/24 dev cable");
    Some(hosts)
}

/// Calls `bind` in the namespace, with this runtime.
fn bound_in(namespace: &NetNamespace, bind: impl FnOnce() -> Endpoint + Send) -> Endpoint {
    let runtime = tokio::runtime::Handle::current();
    let bound = namespace.run(|| {
        let _runtime = runtime.enter();
        bind()
    });
    bound.expect("the namespace").with_time_limits(TimeLimits::NONE)
}

/// The next change of our addresses that the peer has answered, without refusing it.
async fn answered(association: &Association) -> AddressChange {
    loop {
        if let Event::AddressChanged { change, refused } =
            in_time(association.event()).await.unwrap()
        {
            assert_eq!(refused, None, "{change:?}");
            return change;
        }
    }
}

/// A message there and back.
async fn exchange(ours: &Association, theirs: &Association) {
    ours.stream(0).send("there").await.unwrap();
    assert_eq!(in_time(theirs.recv()).await.unwrap().payload, "there");
    theirs.stream(0).send("and back").await.unwrap();
    assert_eq!(in_time(ours.recv()).await.unwrap().payload, "and back");
}

/// The local addresses of the active paths.
fn active(association: &Association) -> Vec<IpAddr> {
    let paths = association.statistics().paths.into_iter();
    let active = paths.filter(|path| path.state == PathState::Active);
    active.map(|path| path.local.ip()).collect()
}

async fn follow_on(bind: fn(IpAddr) -> Endpoint, hosts: [NetNamespace; 2]) {
    let server = bound_in(&hosts[1], || bind(ip(SERVER)));
    let client = bound_in(&hosts[0], || {
        let client = bind(ip("0.0.0.0"));
        client.follow_addresses().expect("netlink");
        client
    });
    let remote = SocketAddr::new(ip(SERVER), server.local_addr().port());
    let connecting = client.connect(remote, server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    exchange(&ours, &theirs).await;

    // An address is added, and the association uses it: traffic goes on when the first one is removed.
    netns::ip(&hosts[0], &format!("address add {SECOND}/24 dev cable"));
    assert_eq!(answered(&ours).await, AddressChange::Added(ip(SECOND)));
    exchange(&ours, &theirs).await;
    netns::ip(&hosts[0], &format!("address delete {FIRST}/24 dev cable"));
    netns::ip(&hosts[0], &format!("route replace {SERVER}/32 dev cable"));
    assert_eq!(answered(&ours).await, AddressChange::Deleted(ip(FIRST)));
    exchange(&ours, &theirs).await;
    assert_eq!(active(&ours), [ip(SECOND)]);

    // The only address is replaced by another one: the association moves.
    netns::ip(&hosts[0], &format!("address delete {SECOND}/24 dev cable"));
    netns::ip(&hosts[0], &format!("address add {FIRST}/24 dev cable"));
    assert_eq!(answered(&ours).await, AddressChange::Added(ip(FIRST)));
    exchange(&ours, &theirs).await;
    assert_eq!(active(&ours), [ip(FIRST)]);

    // A new association lists the present addresses.
    in_time(ours.shutdown()).await;
    drop((ours, theirs));
    let connecting = client.connect(remote, server.port());
    let (ours, theirs) = in_time(async { tokio::join!(connecting, server.accept()) }).await;
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    exchange(&ours, &theirs).await;
    assert_eq!(active(&ours), [ip(FIRST)]);
}

#[tokio::test]
async fn associations_in_udp_follow_the_addresses_of_the_host() {
    let Some(hosts) = hosts() else { return };
    let bind = |address: IpAddr| {
        let port = if address.is_unspecified() { 0 } else { SCTP_PORT };
        let config = server_config().port(port);
        Endpoint::bind_unencrypted((address, 0).into(), config).expect("a free port")
    };
    follow_on(bind, hosts).await;
}

#[tokio::test]
async fn associations_over_ip_follow_the_addresses_of_the_host() {
    let Some(hosts) = hosts() else { return };
    let bind = |address: IpAddr| {
        let port = if address.is_unspecified() { 0 } else { SCTP_PORT };
        Endpoint::bind_raw(address, server_config().port(port)).expect("raw sockets")
    };
    follow_on(bind, hosts).await;
}

#[tokio::test]
async fn an_endpoint_with_one_address_cannot_follow() {
    let bound =
        Endpoint::bind_unencrypted("127.0.0.1:0".parse().unwrap(), client_config()).unwrap();
    let error = bound.follow_addresses().expect_err("it is bound to one address");
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}
