//! Shards: several sockets at one address, each with a driver and a state machine of its own, behind one endpoint.
//!
//! Packets without encryption are steered by their verification tag: each shard draws its tags from a residue class, so
//! that an association stays on its shard when the peer's address changes. What has no tag of ours, an INIT or a packet with the
//! peer's tag (T bit), goes to the shard that a hash of the sender names, its *home*; associations that are begun here begin on the
//! home of the peer. Encrypted packets are all steered by that hash.
//!
//! The kernel does the same with a filter program ([`Steering::program`]). A shard hands packets over that belong to
//! another: those of a batch that the kernel delivers as a whole, with the tag of its first packet.

use std::net::{IpAddr, SocketAddr};

use rexmit_sctp::EndpointConfig;

/// RFC 9260 §3.1: ports, verification tag, checksum.
const COMMON_HEADER_LEN: u32 = 12;
/// Where the verification tag is.
const TAG_AT: u32 = 4;
/// The chunks that may have the tag of their receiver's peer, if the T bit is set (RFC 9260 §8.5.1).
const ABORT: u8 = 6;
const SHUTDOWN_COMPLETE: u8 = 14;
const T_BIT: u8 = 1;

/// To which of several shards a packet belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steering {
    count: u32,
    /// Random odd factors of the hash, so that no peer can choose addresses of one shard: of the UDP port, of the words of
    /// the address, and of the whole.
    factors: [u32; 6],
    /// Whether verification tags can be read.
    by_tag: bool,
}

impl Steering {
    /// The number of shards.
    pub(super) const fn count(&self) -> usize {
        self.count as usize
    }

    pub(super) fn new(count: usize, by_tag: bool) -> Result<Self, getrandom::Error> {
        let mut random = [0; 24];
        getrandom::fill(&mut random)?;
        let word = |n: usize| u32::from_ne_bytes(std::array::from_fn(|byte| random[4 * n + byte]));
        let factors = std::array::from_fn(|n| word(n) | 1);
        Ok(Self { count: u32::try_from(count).unwrap_or(1).max(1), factors, by_tag })
    }

    /// The shard for what a peer at `remote` begins, and for associations with it that are begun here.
    pub(super) fn home(&self, remote: SocketAddr) -> usize {
        let [port, words @ .., whole] = self.factors;
        let mut hash = 0_u32;
        // A product passes differences up only, the shift passes them down: each bit of an address counts.
        let mut add = |word: u32, factor: u32| {
            hash = hash.wrapping_add(word.wrapping_mul(factor));
            hash ^= hash >> 16;
        };
        add(remote.port().into(), port);
        match remote.ip().to_canonical() {
            IpAddr::V4(ip) => add(ip.to_bits(), words[0]),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                for (factor, shift) in words.into_iter().zip([96, 64, 32, 0]) {
                    add((bits >> shift) as u32, factor);
                }
            }
        }
        hash = hash.wrapping_mul(whole);
        hash = (hash ^ (hash >> 15)).wrapping_mul(whole);
        ((hash >> 16) % self.count) as usize
    }

    /// The shard of a packet from `remote`.
    pub(super) fn shard_of(&self, remote: SocketAddr, packet: &[u8]) -> usize {
        let tag = packet.get(TAG_AT as usize..).and_then(|rest| rest.first_chunk());
        let tag = u32::from_be_bytes(tag.copied().unwrap_or_default());
        let has_tag = self.by_tag && tag != 0 && packet.len() >= COMMON_HEADER_LEN as usize;
        let is_reflected = || match packet.get(COMMON_HEADER_LEN as usize..) {
            Some(&[ABORT | SHUTDOWN_COMPLETE, flags, ..]) => flags & T_BIT != 0,
            _ => false,
        };
        if has_tag && !is_reflected() { (tag % self.count) as usize } else { self.home(remote) }
    }

    /// The filter program that answers as [`shard_of`](Self::shard_of), for `SO_ATTACH_REUSEPORT_CBPF`: offsets count
    /// from the UDP payload, or from the IP header with [`NETWORK`](program::NETWORK).
    #[cfg(target_os = "linux")]
    pub(super) fn program(&self) -> Vec<libc::sock_filter> {
        program::of(self)
    }
}

#[cfg(target_os = "linux")]
mod program {
    use libc::{
        BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_B, BPF_H, BPF_IND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP,
        BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LEN, BPF_MEM, BPF_MISC, BPF_MOD, BPF_MSH, BPF_MUL,
        BPF_RET, BPF_RSH, BPF_ST, BPF_TAX, BPF_W, BPF_X, BPF_XOR, sock_filter,
    };

    use crate::endpoint::shards::{
        ABORT, COMMON_HEADER_LEN, SHUTDOWN_COMPLETE, Steering, T_BIT, TAG_AT,
    };

    /// The offset that stands for the IP header (`SKF_NET_OFF`).
    pub(super) const NETWORK: u32 = libc::SKF_NET_OFF as u32;
    /// Where the fields of IP headers are: the source addresses, and the source port behind a header of IPv6 without
    /// extensions. With extensions the packet is handed over to its shard.
    const V4_SOURCE: u32 = NETWORK + 12;
    const V6_SOURCE: u32 = NETWORK + 8;
    const V6_PORT: u32 = NETWORK + 40;

    const fn op(code: u32, k: u32) -> sock_filter {
        sock_filter { code: code as u16, jt: 0, jf: 0, k }
    }

    const fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
        sock_filter { code: (BPF_JMP | condition | BPF_K) as u16, jt, jf, k }
    }

    /// Multiplies A by `factor`, and adds it to the hash in memory.
    const fn add_to_hash(factor: u32) -> [sock_filter; 7] {
        [
            op(BPF_ALU | BPF_MUL | BPF_K, factor),
            op(BPF_LDX | BPF_MEM, 0),
            op(BPF_ALU | BPF_ADD | BPF_X, 0),
            op(BPF_MISC | BPF_TAX, 0),
            op(BPF_ALU | BPF_RSH | BPF_K, 16),
            op(BPF_ALU | BPF_XOR | BPF_X, 0),
            op(BPF_ST, 0),
        ]
    }

    pub(super) fn of(steering: &Steering) -> Vec<sock_filter> {
        let [port, words @ .., whole] = steering.factors;
        let answer = [op(BPF_ALU | BPF_MOD | BPF_K, steering.count), op(BPF_RET | BPF_A, 0)];
        let load = |offset| op(BPF_LD | BPF_W | BPF_ABS, offset);
        let mut program = Vec::new();
        if steering.by_tag {
            // Jumps count the instructions between; the last one of this part answers.
            program.extend([
                op(BPF_LD | BPF_W | BPF_LEN, 0),
                jump(BPF_JGE, COMMON_HEADER_LEN, 0, 12),
                load(TAG_AT),
                jump(BPF_JEQ, 0, 10, 0),
                op(BPF_LD | BPF_W | BPF_LEN, 0),
                jump(BPF_JGE, COMMON_HEADER_LEN + 2, 0, 5),
                op(BPF_LD | BPF_B | BPF_ABS, COMMON_HEADER_LEN),
                jump(BPF_JEQ, ABORT.into(), 1, 0),
                jump(BPF_JEQ, SHUTDOWN_COMPLETE.into(), 0, 2),
                op(BPF_LD | BPF_B | BPF_ABS, COMMON_HEADER_LEN + 1),
                jump(BPF_JSET, T_BIT.into(), 3, 0),
                load(TAG_AT),
            ]);
            program.extend(answer);
        }
        let mut v4 =
            vec![op(BPF_LDX | BPF_B | BPF_MSH, NETWORK), op(BPF_LD | BPF_H | BPF_IND, NETWORK)];
        v4.extend(add_to_hash(port));
        v4.push(load(V4_SOURCE));
        v4.extend(add_to_hash(words[0]));
        let mut v6 = vec![op(BPF_LD | BPF_H | BPF_ABS, V6_PORT)];
        v6.extend(add_to_hash(port));
        for (n, factor) in (0..).zip(words) {
            v6.push(load(V6_SOURCE + 4 * n));
            v6.extend(add_to_hash(factor));
        }
        v4.push(op(BPF_JMP | BPF_JA, v6.len() as u32));
        program.extend([
            op(BPF_LD | BPF_K, 0),
            op(BPF_ST, 0),
            op(BPF_LD | BPF_B | BPF_ABS, NETWORK),
            op(BPF_ALU | BPF_RSH | BPF_K, 4),
            jump(BPF_JEQ, 4, 0, v4.len() as u8),
        ]);
        program.extend(v4);
        program.extend(v6);
        program.extend([
            op(BPF_LD | BPF_MEM, 0),
            op(BPF_ALU | BPF_MUL | BPF_K, whole),
            op(BPF_MISC | BPF_TAX, 0),
            op(BPF_ALU | BPF_RSH | BPF_K, 15),
            op(BPF_ALU | BPF_XOR | BPF_X, 0),
            op(BPF_ALU | BPF_MUL | BPF_K, whole),
            op(BPF_ALU | BPF_RSH | BPF_K, 16),
        ]);
        program.extend(answer);
        program
    }
}

/// A part of `limit` for shard `index` of `count`: the parts of all add up to it.
pub(super) const fn part(limit: usize, index: usize, count: usize) -> usize {
    limit / count + (index < limit % count) as usize
}

/// The configuration of shard `index`: its part of the limits.
pub(super) fn config_of(config: &EndpointConfig, index: usize) -> EndpointConfig {
    let part = |limit| part(limit, index, config.shards);
    config
        .clone()
        .shards(1)
        .max_associations(part(config.max_associations))
        .max_receive_bytes(part(config.max_receive_bytes))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::socket::Socket;

    const COUNT: usize = 5;

    fn packets() -> Vec<Vec<u8>> {
        let packet = |tag: u32, rest: &[u8]| {
            [&[0x13, 0x88, 0x13, 0x88], &tag.to_be_bytes()[..], &[0; 4], rest].concat()
        };
        let mut packets: Vec<_> = [1, 2, 3, 4, 5, 1 << 31, u32::MAX]
            .into_iter()
            .flat_map(|tag| {
                [
                    packet(tag, &[]),
                    packet(tag, &[ABORT]),
                    packet(tag, &[ABORT, 0, 0, 4]),
                    packet(tag, &[ABORT, T_BIT, 0, 4]),
                    packet(tag, &[SHUTDOWN_COMPLETE, 0, 0, 4]),
                    packet(tag, &[SHUTDOWN_COMPLETE, T_BIT, 0, 4]),
                    packet(tag, &[0, T_BIT, 0, 4]),
                ]
            })
            .collect();
        packets.push(packet(0, &[1, 0, 0, 4]));
        let whole = packet(3, &[]);
        packets.extend((0..whole.len()).map(|len| whole[..len].to_vec()));
        packets
    }

    /// The number of the socket that has received a packet.
    async fn receiver(sockets: &[Socket]) -> usize {
        let mut inbox = crate::socket::Inbox::default();
        std::future::poll_fn(|cx| {
            for (number, socket) in sockets.iter().enumerate() {
                if socket.poll_receive(cx, &mut inbox).is_ready() {
                    inbox.release();
                    return std::task::Poll::Ready(number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    #[tokio::test]
    async fn the_kernel_steers_as_the_shards_do() {
        for by_tag in [true, false] {
            for (own, from) in
                [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.1")]
            {
                let steering = Steering::new(COUNT, by_tag).unwrap();
                let program = steering.program();
                let sockets = Socket::bind_group(own.parse().unwrap(), COUNT, &program).unwrap();
                let to = (from, sockets[0].local_addr().port());
                let mut homes = std::collections::BTreeSet::new();
                for packet in packets() {
                    let sender = UdpSocket::bind((from, 0)).unwrap();
                    let remote = sender.local_addr().unwrap();
                    sender.send_to(&packet, to).unwrap();
                    let limit = Duration::from_secs(20);
                    let number = tokio::time::timeout(limit, receiver(&sockets)).await;
                    let expected = steering.shard_of(remote, &packet);
                    assert_eq!(number.expect("a packet"), expected, "{remote}: {packet:x?}");
                    homes.insert(steering.home(remote));
                }
                assert_eq!(homes.len(), COUNT, "the hash names every shard");
            }
        }
    }

    #[test]
    fn packets_with_a_tag_of_ours_go_to_its_shard_and_others_home() {
        let steering = Steering::new(COUNT, true).unwrap();
        let remote = |n: u16| SocketAddr::from(([192, 0, 2, 1], 9000 + n));
        let tag = [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0];
        let with = |chunk: &[u8]| [&tag[..], chunk].concat();
        for n in 0..100 {
            let (remote, home) = (remote(n), steering.home(remote(n)));
            assert_eq!(steering.shard_of(remote, &tag), 2);
            assert_eq!(steering.shard_of(remote, &with(&[ABORT, 0, 0, 4])), 2);
            assert_eq!(steering.shard_of(remote, &with(&[ABORT, T_BIT, 0, 4])), home);
            assert_eq!(steering.shard_of(remote, &tag[..11]), home);
            assert_eq!(steering.shard_of(remote, &[0; 12]), home);
        }
    }

    /// Asserts that hardly any factors put more than half of `addresses` into one of four shards.
    fn are_spread(addresses: &[SocketAddr]) {
        let mut random = rexmit_core::Seed::from_u64(1).rng();
        const ROUNDS: usize = 100;
        let mut are_few = 0;
        for _ in 0..ROUNDS {
            let factors = std::array::from_fn(|_| random.u32() | 1);
            let steering = Steering { count: 4, factors, by_tag: true };
            let mut counts = [0; 4];
            addresses.iter().for_each(|&remote| counts[steering.home(remote)] += 1);
            are_few += usize::from(counts.iter().any(|&count| count > addresses.len() / 2));
        }
        assert!(are_few < ROUNDS / 10, "{are_few}: {addresses:?}");
    }

    #[test]
    fn addresses_in_any_steps_are_spread_over_the_shards() {
        for shift in 0..28 {
            let v4 = |n: u32| SocketAddr::from(((0x0a00_0001 ^ (n << shift)).to_be_bytes(), 9899));
            let count = 32.min(1_u64 << (32 - shift)) as u32;
            are_spread(&(0..count).map(v4).collect::<Vec<_>>());
        }
        for shift in 0..124 {
            let bits = |n: u128| (0x2001_0db8 << 96 | 1) ^ (n << shift);
            let v6 = |n| SocketAddr::from((std::net::Ipv6Addr::from_bits(bits(n)), 9899));
            are_spread(&(0..1 << (128 - shift).min(5)).map(v6).collect::<Vec<_>>());
        }
        for shift in 0..12 {
            let port = |n: u16| SocketAddr::from(([10, 0, 0, 1], n << shift));
            are_spread(&(0..32.min(1_u32 << (16 - shift)) as u16).map(port).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_shard_has_its_part_of_the_limits() {
        let config = EndpointConfig::default().shards(3).max_associations(10);
        let config = config.max_receive_bytes(100_001);
        let parts = [0, 1, 2].map(|index| config_of(&config, index));
        assert_eq!(parts.each_ref().map(|it| it.max_associations), [4, 3, 3]);
        assert_eq!(parts.each_ref().map(|it| it.max_receive_bytes), [33_334, 33_334, 33_333]);
    }

    #[test]
    fn the_parts_of_a_limit_add_up_to_it() {
        for (limit, count) in [(1024, 1), (1024, 3), (64, 64), (65, 64), (10, 4)] {
            let parts: Vec<_> = (0..count).map(|index| part(limit, index, count)).collect();
            assert_eq!(parts.iter().sum::<usize>(), limit);
            assert!(parts.iter().all(|part| part.abs_diff(limit / count) <= 1), "{parts:?}");
        }
    }
}
