//! SCTP directly over IP, between two network namespaces that the test makes (iproute2).

mod common;

use std::fs::File;
use std::net::IpAddr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use common::{in_time, server_config};
use rexmit::{BindError, CloseReason, Endpoint, EndpointConfig};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Two namespaces with a cable between them; dropping it removes them.
struct Namespaces {
    names: [String; 2],
}

const ADDRESSES: [[&str; 2]; 2] = [["10.132.0.1", "fd00:132::1"], ["10.132.0.2", "fd00:132::2"]];

impl Namespaces {
    /// Prints a note and returns `None` if this is not permitted.
    fn make() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, test) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "b"].map(|end| format!("rexmit-{process}-{test}{end}"));
        match ip(&["netns", "add", &names[0]]) {
            // "Operation not permitted", "Permission denied", or no iproute2 at all.
            Err(error) if error.contains("ermi") || error.contains("No such file") => {
                rexmit_testkit::not_run(format_args!(
                    "needs root (CAP_NET_RAW, CAP_NET_ADMIN): {error}"
                ));
                return None;
            }
            made => made.expect("a network namespace"),
        }
        // From here on it is cleaned up, whatever happens.
        let namespaces = Self { names };
        let [a, b] = &namespaces.names;
        must(&["netns", "add", b]);
        let cable = ["type", "veth", "peer", "name", "cable", "netns", b];
        must(&[&["link", "add", "cable", "netns", a][..], &cable].concat());
        for (name, [v4, v6]) in namespaces.names.iter().zip(ADDRESSES) {
            must(&["-n", name, "address", "add", &format!("{v4}/24"), "dev", "cable"]);
            must(&["-n", name, "address", "add", &format!("{v6}/64"), "dev", "cable", "nodad"]);
            must(&["-n", name, "link", "set", "cable", "up"]);
            must(&["-n", name, "link", "set", "lo", "up"]);
        }
        Some(namespaces)
    }

    /// Runs `task` in a new thread in one of the namespaces.
    fn run_in<T: Send + 'static>(
        &self,
        end: usize,
        task: impl AsyncFnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.names[end])).unwrap();
        thread::spawn(move || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), network).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(task())
        })
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            // A namespace may not have been created.
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

fn must(arguments: &[&str]) {
    ip(arguments).unwrap_or_else(|error| panic!("ip {}: {error}", arguments.join(" ")));
}

fn config(port: u16) -> EndpointConfig {
    server_config().port(port)
}

#[test]
fn messages_cross_raw_ip_between_namespaces() {
    let Some(namespaces) = Namespaces::make() else { return };
    for (family, server_address) in ADDRESSES[1].into_iter().enumerate() {
        let server_address: IpAddr = server_address.parse().unwrap();
        let client_address: IpAddr = ADDRESSES[0][family].parse().unwrap();
        let (ready, is_ready) = mpsc::channel();
        let server = namespaces.run_in(1, async move || {
            // Another endpoint at this address receives every packet, too, and must not answer those for other ports.
            let neighbour = Endpoint::bind_raw(server_address, config(5001)).unwrap();
            let endpoint = Endpoint::bind_raw(server_address, config(5000)).unwrap();
            ready.send(()).unwrap();
            let association = in_time(endpoint.accept()).await.unwrap();
            assert_eq!(association.peer_addr(), (client_address, 0).into());
            while let Some(message) = in_time(association.recv()).await {
                association.stream(0).send(message.payload).await.unwrap();
            }
            assert_eq!(association.close_reason(), Some(CloseReason::Shutdown));
            assert_eq!(neighbour.statistics().packets_received, 0);
            assert_eq!(neighbour.statistics().packets_sent, 0);
        });
        is_ready.recv().unwrap();
        let client = namespaces.run_in(0, async move || {
            let endpoint = Endpoint::bind_raw(client_address, config(6000)).unwrap();
            let endpoint = endpoint.with_time_limits(rexmit::TimeLimits::NONE);
            assert_eq!(endpoint.local_addr(), (client_address, 0).into());
            let connecting = endpoint.connect((server_address, 9899).into(), 5000);
            let association = in_time(connecting).await.unwrap();
            for number in 0..200_u8 {
                let payload = vec![number; usize::from(number) * 50 + 1];
                association.stream(0).send(payload.clone()).await.unwrap();
                assert_eq!(in_time(association.recv()).await.unwrap().payload, payload);
            }
            assert_eq!(in_time(association.shutdown()).await, CloseReason::Shutdown);
        });
        client.join().expect("the client's end");
        server.join().expect("the server's end");
    }
}

#[test]
fn nothing_listens_at_a_raw_address() {
    let Some(namespaces) = Namespaces::make() else { return };
    let client = namespaces.run_in(0, async || {
        let address: IpAddr = ADDRESSES[0][0].parse().unwrap();
        let endpoint = Endpoint::bind_raw(address, config(6000)).unwrap();
        let error = in_time(endpoint.connect("198.51.100.1:0".parse().unwrap(), 5000)).await;
        // No route to the peer.
        error.expect_err("no peer").to_string()
    });
    let error = client.join().unwrap();
    assert!(error.starts_with("nothing can be sent to 198.51.100.1:0"), "{error}");
}

#[test]
fn without_the_privilege_it_says_what_to_do() {
    let error = thread::spawn(|| {
        let nobody = rustix::process::Uid::from_raw(65_534);
        // Takes the capabilities of this thread alone, if it had any.
        let _ = rustix::thread::set_thread_res_uid(nobody, nobody, nobody);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _context = runtime.enter();
        Endpoint::bind_raw("127.0.0.1".parse().unwrap(), config(5000)).map(drop)
    })
    .join()
    .unwrap()
    .expect_err("raw sockets need a privilege");
    assert!(matches!(error, BindError::NeedsRawSockets { .. }), "{error}");
    assert!(error.to_string().contains("setcap cap_net_raw"), "{error}");
}
