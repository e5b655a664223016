//! The minimum number of packets for meeting a deadline.
//!
//! The model: every packet is acknowledged individually. The packet is lost with probability p, its
//! ACK with probability a. In either case the sender observes, one RTT after sending, that the ACK
//! is missing; the probability is u = 1 − (1−p)·(1−a). Copies are sent in packets of their own, and
//! messages are further apart than an RTT, so that ACKs of other messages give no information.
//!
//! A sender sends m copies at first, n more if no ACK arrives within an RTT, and then one every RTT
//! until an ACK arrives. A share `p^(m+n)` of its messages takes longer than D + RTT, and it needs
//! `m + u^m·(n + u^n/(1−u))` packets per message. For a given share of late messages, it chooses
//! randomly between two such plans: for 5 % loss in each direction and one late message in 1000, it
//! sends one copy at first, and then two with probability 12/19, else one.

/// Largest numbers of copies sent at first, and one round-trip time later.
const MAX_COPIES: [i32; 2] = [6, 40];

/// The cost of a plan, per message.
#[derive(Clone, Copy)]
struct Plan {
    late: f64,
    packets: f64,
}

/// The minimum number of packets per message of any sender in this model, if at most the share
/// `late` of the messages may take longer than D + RTT. `forward` and `backward` are the packet
/// loss rates of the two directions.
///
/// `None` if the largest number of copies does not suffice, or every ACK is lost.
///
/// ```
/// use rexmit_lab::bound::least_packets;
/// let percent = |packets: Option<f64>| (1000.0 * (packets.unwrap() - 1.0)).round() / 10.0;
/// assert_eq!(percent(least_packets(0.05, 0.05, 1e-3)), 16.4);
/// assert_eq!(percent(least_packets(0.05, 0.0, 1e-3)), 8.3);
/// assert_eq!(percent(least_packets(0.01, 0.01, 1e-4)), 2.0);
/// ```
#[must_use]
pub fn least_packets(forward: f64, backward: f64, late: f64) -> Option<f64> {
    let unanswered = 1.0 - (1.0 - forward) * (1.0 - backward);
    if unanswered >= 1.0 {
        return None;
    }
    let [max_first, max_second] = MAX_COPIES;
    let plans = (1..=max_first).flat_map(|first| (1..=max_second).map(move |n| (first, n)));
    let plans = plans.map(|(first, second)| {
        let rest = unanswered.powi(second) / (1.0 - unanswered);
        let packets = f64::from(first) + unanswered.powi(first) * (f64::from(second) + rest);
        Plan { late: forward.powi(first + second), packets }
    });
    let (in_time, too_late): (Vec<_>, Vec<_>) = plans.partition(|plan| plan.late <= late);
    let mixed = in_time.iter().flat_map(|good| too_late.iter().map(|bad| mix(good, bad, late)));
    in_time.iter().map(|plan| plan.packets).chain(mixed).min_by(f64::total_cmp)
}

/// The packets of a random choice between both plans. The plan that is too late is used for as many messages as `late`
/// allows.
fn mix(good: &Plan, bad: &Plan, late: f64) -> f64 {
    let share = (late - good.late) / (bad.late - good.late);
    good.packets + share * (bad.packets - good.packets)
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;

    #[test]
    fn one_copy_or_two_by_lot() {
        for (p, a, late) in [(0.05_f64, 0.05_f64, 1e-3), (0.05, 0.0, 1e-3), (0.02, 0.1, 1e-4)] {
            let u = 1.0 - (1.0 - p) * (1.0 - a);
            let two = (p * p - late) / (p * p - p * p * p);
            let after = two * u * u + (1.0 - two) * u;
            let expected = 1.0 + u * (1.0 + two + after / (1.0 - u));
            let least = least_packets(p, a, late).unwrap();
            assert!((least - expected).abs() < 1e-12, "{least} and {expected}");
        }
    }

    #[test]
    fn the_least_number_of_packets_repeats_until_acknowledged() {
        let u: f64 = 0.19;
        let least = least_packets(0.1, 0.1, 0.01 + 1e-12).unwrap();
        assert!((least - 1.0 / (1.0 - u)).abs() < 1e-12, "{least}");
        assert_eq!(least_packets(0.0, 0.0, 0.0), Some(1.0));
        assert_eq!(least_packets(0.9, 0.0, 1e-9), None);
        assert_eq!(least_packets(0.0, 1.0, 0.5), None);
    }

    /// If nearly every packet is lost, it is cheaper to send two copies at once than more of them later.
    #[test]
    fn a_bad_link_is_worth_a_copy_at_first() {
        let u: f64 = 1.0 - 0.5 * 0.5;
        let one = |late: f64| 1.0 + u * (late.log2().abs() - 1.0);
        let least = least_packets(0.5, 0.5, 1.0 / 1024.0).unwrap();
        assert!(least < one(1.0 / 1024.0) - 0.5, "{least}");
    }

    /// Round by round, every fate of every copy: lost, arrived unanswered, or answered.
    fn enumerate([lost, unanswered]: [f64; 2], plan: [u32; 2]) -> Plan {
        let fates = [lost, (1.0 - lost) * unanswered, (1.0 - lost) * (1.0 - unanswered)];
        let mut sum = Plan { late: 0.0, packets: 0.0 };
        // Probabilities without an ACK so far: not arrived, and arrived.
        let mut waiting = [1.0, 0.0];
        for round in 0..200 {
            let copies = plan.get(round).copied().unwrap_or(1);
            sum.packets += f64::from(copies) * (waiting[0] + waiting[1]);
            let mut next = [0.0, 0.0];
            for course in 0..3_usize.pow(copies) {
                let course = (0..copies).map(|copy| course / 3_usize.pow(copy) % 3);
                let chance: f64 = course.clone().map(|fate| fates[fate]).product();
                match course.max() {
                    Some(0) => (0..2).for_each(|n| next[n] += chance * waiting[n]),
                    Some(1) => next[1] += chance * (waiting[0] + waiting[1]),
                    _ => {}
                }
            }
            waiting = next;
            if round == 1 {
                sum.late = waiting[0];
            }
        }
        sum
    }

    /// No random choice among four plans is cheaper, and one is nearly as cheap.
    #[test]
    fn nothing_cheaper_is_found_by_trying() {
        for (loss, late) in [([0.1, 0.2], 2e-3), ([0.2, 0.1], 5e-3), ([0.3, 0.3], 1e-2)] {
            let plans = [[1, 1], [1, 2], [1, 3], [2, 2]].map(|plan| enumerate(loss, plan));
            const PARTS: u32 = 100;
            let mut found = f64::INFINITY;
            for a in 0..=PARTS {
                for b in 0..=PARTS - a {
                    for c in 0..=PARTS - a - b {
                        let shares = [a, b, c, PARTS - a - b - c].map(|n| f64::from(n) / 100.0);
                        let sum = |of: fn(&Plan) -> f64| -> f64 {
                            plans.iter().zip(shares).map(|(plan, share)| share * of(plan)).sum()
                        };
                        if sum(|plan| plan.late) <= late {
                            found = found.min(sum(|plan| plan.packets));
                        }
                    }
                }
            }
            let least = least_packets(loss[0], loss[1], late).unwrap();
            assert!((least - 1e-6..least + 0.01).contains(&found), "{least} and {found}");
        }
    }

    #[test]
    fn chance_gives_the_same() {
        const MESSAGES: u32 = 300_000;
        let (loss, late) = ([0.05, 0.05], 1e-3);
        let mut rng = Seed::from_u64(1).rng();
        let (mut packets, mut too_late) = (0_u32, 0_u32);
        for _ in 0..MESSAGES {
            let second = if rng.chance(12.0 / 19.0) { 2 } else { 1 };
            let (mut arrived_in, mut is_answered, mut round) = (None, false, 0);
            while !is_answered {
                for _ in 0..if round == 1 { second } else { 1 } {
                    packets += 1;
                    if !rng.chance(loss[0]) {
                        arrived_in = arrived_in.or(Some(round));
                        is_answered |= !rng.chance(loss[1]);
                    }
                }
                round += 1;
            }
            too_late += u32::from(arrived_in > Some(1));
        }
        let mean = f64::from(packets) / f64::from(MESSAGES);
        let least = least_packets(loss[0], loss[1], late).unwrap();
        // The deviation of the packets of a message is about a half.
        assert!((mean - least).abs() < 5.0 * 0.5 / f64::from(MESSAGES).sqrt(), "{mean} {least}");
        let away = f64::from(too_late) - late * f64::from(MESSAGES);
        assert!(away.abs() < 5.0 * (late * f64::from(MESSAGES)).sqrt(), "{too_late}");
    }
}
