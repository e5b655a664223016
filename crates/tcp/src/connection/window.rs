//! The window that we advertise (RFC 9293 §3.8.6.2.2, RFC 7323 §2): it never shrinks, and it opens only by
//! amounts that are worth a segment.

/// The window advertised to the peer, by its right edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferedWindow {
    /// The sequence number after the last that was ever advertised (RCV.NXT + RCV.WND).
    edge: u64,
    /// Rcv.Wind.Shift.
    shift: u8,
}

/// The room in the receive buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// RCV.NXT.
    pub(super) rcv_nxt: u64,
    /// The free bytes of the buffer.
    pub(super) free: usize,
    /// The minimum by which the window opens: the smaller of half the buffer and a segment.
    pub(super) step: u64,
}

impl OfferedWindow {
    /// A window whose right edge is `edge`.
    pub(super) const fn new(edge: u64, shift: u8) -> Self {
        Self { edge, shift }
    }

    /// The sequence number after the last that the peer may use.
    pub(super) const fn edge(&self) -> u64 {
        self.edge
    }

    /// The right edge that the window could have now, in steps of the scale.
    fn candidate(&self, room: Room) -> u64 {
        let window = (room.free as u64 >> self.shift).min(u16::MAX.into()) << self.shift;
        room.rcv_nxt + window
    }

    /// The window field of the next segment, in units of the window scale. If the receive buffer has room, the window is
    /// rounded up: rounding down would seem to shrink a window that has not changed. Without room it is rounded down (RFC
    /// 7323 §2.4); data up to the edge announced before is still accepted. Rounding up would then let many small segments
    /// move the edge without limit.
    pub(super) fn offer(&mut self, room: Room) -> u16 {
        let candidate = self.candidate(room);
        if candidate >= self.edge + room.step {
            self.edge = candidate;
        }
        let left = self.edge.saturating_sub(room.rcv_nxt);
        let up = left.div_ceil(1 << self.shift);
        let has_room = up << self.shift <= room.free as u64;
        let field = if has_room { up } else { left >> self.shift };
        let field = u16::try_from(field).unwrap_or(u16::MAX);
        self.edge = self.edge.max(room.rcv_nxt + (u64::from(field) << self.shift));
        field
    }

    /// Whether a window update is worth a segment, after the application has read data: the window has at
    /// least doubled.
    pub(super) fn is_worth_an_update(&self, room: Room) -> bool {
        let candidate = self.candidate(room);
        let left = self.edge.saturating_sub(room.rcv_nxt);
        candidate >= self.edge + room.step && candidate - room.rcv_nxt >= 2 * left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn room(rcv_nxt: u64, free: usize) -> Room {
        Room { rcv_nxt, free, step: 1000 }
    }

    #[test]
    fn opens_by_a_segment_at_least_and_never_shrinks() {
        let mut window = OfferedWindow::new(5000, 0);
        assert_eq!(window.offer(room(1000, 4000)), 4000);
        assert_eq!(window.offer(room(3000, 2000)), 2000);
        assert_eq!(window.offer(room(3000, 2999)), 2000);
        assert_eq!(window.offer(room(3000, 3000)), 3000);
        assert_eq!(window.offer(room(3000, 0)), 3000);
        assert_eq!(window.edge(), 6000);
    }

    #[test]
    fn a_scaled_window_is_not_rounded_back() {
        let mut window = OfferedWindow::new(1000, 4);
        assert_eq!(window.offer(room(1000, 4100)), 256);
        assert_eq!(window.edge(), 1000 + 4096);
        // 4089 are left, which is 255.6 units.
        assert_eq!(window.offer(room(1007, 4096)), 256);
        assert_eq!(window.edge(), 1007 + 4096);
    }

    #[test]
    fn rounding_never_offers_more_than_there_is_room_for() {
        const LIMIT: u64 = 4100;
        let mut window = OfferedWindow::new(1000, 4);
        assert_eq!(window.offer(room(1000, LIMIT as usize)), 256);
        // A byte at a time, without a reader.
        let mut rcv_nxt = 1000;
        while rcv_nxt < window.edge() {
            rcv_nxt += 1;
            let before = window.edge();
            window.offer(room(rcv_nxt, (1000 + LIMIT - rcv_nxt) as usize));
            assert!((before..=1000 + LIMIT).contains(&window.edge()), "{}", window.edge());
        }
    }

    #[test]
    fn an_update_is_worth_it_when_the_window_doubles() {
        let window = OfferedWindow::new(3000, 0);
        assert!(!window.is_worth_an_update(room(1000, 3999)));
        assert!(window.is_worth_an_update(room(1000, 4000)));
        let closed = OfferedWindow::new(1000, 0);
        assert!(!closed.is_worth_an_update(room(1000, 999)));
        assert!(closed.is_worth_an_update(room(1000, 1000)));
    }
}
