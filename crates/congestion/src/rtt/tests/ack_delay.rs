use crate::rtt::*;

fn after(of_several: &[bool]) -> AckDelay {
    let mut delay = AckDelay::NONE;
    of_several.iter().for_each(|&it| delay.on_ack(it));
    delay
}

#[test]
fn a_receiver_that_acks_every_second_packet_delays_its_acks() {
    assert!(!after(&[true; 3]).is_usual(), "too few");
    assert!(after(&[true; 4]).is_usual());
    assert!(after(&[true, true, false, true, true, true, false]).is_usual());
}

#[test]
fn a_receiver_whose_acks_are_lost_does_not() {
    let every_third: Vec<_> = (0..30).map(|n| n % 3 == 0).collect();
    assert!(!after(&every_third).is_usual());
    let after_delays = [[true; 16], [false; 16]].concat();
    assert!(!after(&after_delays).is_usual(), "only the latest count");
}
