//! Packet scripts: one endpoint under test, its application, and the clock.

use std::collections::VecDeque;
use std::fmt::Debug;

use rexmit_core::{Instant, Machine, Route};

/// The clock of a script, and the state of the endpoint's application.
#[derive(Debug)]
pub struct Run<Id, Event> {
    /// The time.
    pub now: Instant,
    /// The connection most recently begun or reported.
    pub id: Option<Id>,
    events: VecDeque<Event>,
}

impl<Id, Event> Default for Run<Id, Event> {
    fn default() -> Self {
        Self { now: Instant::ZERO, id: None, events: VecDeque::new() }
    }
}

/// A script of packets in virtual time.
///
/// Time is in milliseconds from 0 and stands still until [`Self::at`] moves it. Timers fire at their own
/// instants, so a packet is transmitted at exactly the millisecond a script says. A transmitted packet that the script
/// has not read fails the test: before time moves on, and at the end of the script, where `Drop` calls
/// [`Self::expect_silence`].
pub trait PacketScript {
    /// The endpoint under test.
    type Endpoint: Machine<Event = (Self::Id, Self::Event)>;
    /// Names a connection.
    type Id: Copy + PartialEq;
    /// The events that the endpoint reports of a connection.
    type Event: Debug;
    /// A packet that was transmitted.
    type Sent: Debug;

    /// The clock and the application.
    fn run(&self) -> &Run<Self::Id, Self::Event>;

    /// The endpoint, the clock and the application.
    fn parts(&mut self) -> (&mut Self::Endpoint, &mut Run<Self::Id, Self::Event>);

    /// Reads a packet that was transmitted, and checks what must always hold.
    fn read_sent(&self, at: Instant, route: Route, bytes: Vec<u8>) -> Self::Sent;

    /// Whether it must be the last event of a connection.
    fn is_last(event: &Self::Event) -> bool;

    /// The time, in milliseconds.
    fn now_ms(&self) -> u64 {
        self.run().now.as_nanos() / 1_000_000
    }

    /// The connection of the script.
    #[track_caller]
    fn id(&self) -> Self::Id {
        self.run().id.expect("it is known after `connect` or its first event")
    }

    /// Moves the clock to `ms`. Nothing may be transmitted before; timers due by then fire.
    #[track_caller]
    fn at(&mut self, ms: u64) -> &mut Self {
        let (end, now) = (Instant::from_millis(ms), self.run().now);
        assert!(end >= now, "{ms} ms is past at {now:?}");
        self.expect_silence();
        while let Some(due) = self.due_before(end) {
            self.fire(due);
            self.expect_silence();
        }
        self.fire(end);
        self
    }

    /// Moves the clock to `ms`; nothing may be transmitted before, nor then.
    #[track_caller]
    fn expect_silence_until(&mut self, ms: u64) {
        self.at(ms).expect_silence();
    }

    /// Moves the clock to `ms`, and passes each packet that is transmitted before to `f`.
    fn each_until(&mut self, ms: u64, mut f: impl FnMut(&mut Self, Self::Sent)) {
        let end = Instant::from_millis(ms);
        loop {
            if let Some(sent) = self.poll_packet() {
                f(self, sent);
            } else {
                let Some(due) = self.due_before(end) else { break };
                self.fire(due);
            }
        }
        self.fire(end);
    }

    /// Moves the clock to `ms`; packets transmitted before are lost.
    fn lose_until(&mut self, ms: u64) {
        self.each_until(ms, |_, _| ());
    }

    /// Nothing may be transmitted now.
    #[track_caller]
    fn expect_silence(&mut self) {
        if let Some(sent) = self.poll_packet() {
            panic!("nothing was expected, but {sent:?} was transmitted");
        }
    }

    /// The next packet, which must be transmitted now.
    #[track_caller]
    fn next_packet(&mut self) -> Self::Sent {
        let Some(sent) = self.poll_packet() else {
            panic!("at {:?} a packet was expected; none was transmitted", self.run().now)
        };
        sent
    }

    /// Moves the clock to the time at which the next packet is transmitted, for packets whose time is random.
    #[track_caller]
    fn wait_for_packet(&mut self) -> Self::Sent {
        loop {
            if let Some(sent) = self.poll_packet() {
                return sent;
            }
            let due = self.parts().0.poll_timeout();
            self.fire(due.expect("no timer runs, and nothing is transmitted"));
        }
    }

    /// The next packet, if one is transmitted now.
    #[track_caller]
    fn poll_packet(&mut self) -> Option<Self::Sent> {
        let mut bytes = Vec::new();
        let (endpoint, run) = self.parts();
        let at = run.now;
        let route = endpoint.poll_transmit(at, &mut bytes)?;
        Some(self.read_sent(at, route, bytes))
    }

    /// When the endpoint is due, if that is before `end`.
    fn due_before(&mut self, end: Instant) -> Option<Instant> {
        self.parts().0.poll_timeout().filter(|&due| due < end)
    }

    /// Moves the clock, and fires the timers that are due then.
    #[track_caller]
    fn fire(&mut self, at: Instant) {
        let (endpoint, run) = self.parts();
        run.now = at.max(run.now);
        endpoint.handle_timeout(run.now);
        let next = endpoint.poll_timeout();
        assert!(next.is_none_or(|next| next > run.now), "a timer that was due did not fire");
    }

    /// The next event.
    #[track_caller]
    fn next_event(&mut self) -> Option<Self::Event> {
        self.collect_events();
        self.parts().1.events.pop_front()
    }

    /// All events not read yet.
    #[track_caller]
    fn events(&mut self) -> Vec<Self::Event> {
        self.collect_events();
        self.parts().1.events.drain(..).collect()
    }

    /// Takes the events of the endpoint; none may follow the last one of its connection.
    #[track_caller]
    fn collect_events(&mut self) {
        let (endpoint, run) = self.parts();
        let mut is_closed = run.events.back().is_some_and(Self::is_last);
        while let Some((id, event)) = endpoint.poll_event() {
            is_closed &= run.id == Some(id);
            assert!(!is_closed, "{event:?} came after the last event");
            is_closed = Self::is_last(&event);
            run.id = Some(id);
            run.events.push_back(event);
        }
    }
}

/// Takes the next event: `expect_event!(script, pattern if guard => value)`.
#[macro_export]
macro_rules! expect_event {
    ($script:expr, $event:pat $(if $guard:expr)? $(=> $value:expr)?) => {
        match $script.next_event() {
            Some($event) $(if $guard)? => ($($value)?),
            other => panic!("expected {}, got {other:?}", stringify!($event $(if $guard)?)),
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transmits a packet at 10 ms. Reports the last of `events` first.
    struct Ends {
        due: Option<Instant>,
        packets: usize,
        events: Vec<&'static str>,
    }

    impl Machine for Ends {
        type Event = (u8, &'static str);

        fn handle_input(&mut self, _: Instant, _: Route, _: &[u8]) {}
        fn handle_timeout(&mut self, now: Instant) {
            self.packets += usize::from(self.due.take_if(|due| *due <= now).is_some());
        }
        fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
            packet.clear();
            self.packets = self.packets.checked_sub(1)?;
            let at = crate::address(1, 1);
            Some(Route { local: at, remote: at })
        }
        fn poll_event(&mut self) -> Option<Self::Event> {
            Some((7, self.events.pop()?))
        }
        fn poll_timeout(&self) -> Option<Instant> {
            self.due
        }
    }

    struct Script(Ends, Run<u8, &'static str>);

    impl PacketScript for Script {
        type Endpoint = Ends;
        type Id = u8;
        type Event = &'static str;
        type Sent = u64;

        fn run(&self) -> &Run<u8, &'static str> {
            &self.1
        }
        fn parts(&mut self) -> (&mut Ends, &mut Run<u8, &'static str>) {
            (&mut self.0, &mut self.1)
        }
        fn read_sent(&self, at: Instant, _: Route, _: Vec<u8>) -> u64 {
            at.as_nanos() / 1_000_000
        }
        fn is_last(event: &&'static str) -> bool {
            *event == "closed"
        }
    }

    fn script(events: &[&'static str]) -> Script {
        let due = Some(Instant::from_millis(10));
        let events = events.iter().rev().copied().collect();
        Script(Ends { due, packets: 0, events }, Run::default())
    }

    #[test]
    fn a_packet_is_transmitted_when_its_timer_fires() {
        let mut s = script(&["open", "closed"]);
        s.expect_silence_until(9);
        assert_eq!((s.at(10).next_packet(), s.now_ms()), (10, 10));
        s.expect_silence_until(20);
        expect_event!(s, "open");
        expect_event!(s, event if event == "closed" => ());
        assert_eq!((s.id(), s.events()), (7, vec![]));
        assert_eq!(script(&[]).wait_for_packet(), 10);
        let mut s = script(&[]);
        s.lose_until(30);
        s.expect_silence();
    }

    #[test]
    #[should_panic(expected = "nothing was expected, but 10 was transmitted")]
    fn a_packet_that_was_not_taken_fails_the_script() {
        script(&[]).at(11);
    }

    #[test]
    #[should_panic(expected = "\"late\" came after the last event")]
    fn an_event_after_the_last_fails_the_script() {
        script(&["closed", "late"]).events();
    }
}
