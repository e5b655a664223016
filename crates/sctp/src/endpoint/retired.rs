//! Verification tags of associations that have ended.
//!
//! A state cookie is valid for its whole lifetime, and a network may deliver it late or twice. An endpoint
//! that did not remember its own tag would then begin an ended association again, with the same tag and TSNs,
//! and deliver the data sent with the cookie again. RFC 9260 relies on the cookie's lifetime (§5.1.3).
//!
//! The peer's tag is remembered, too: if both sides sent INIT, one of two cookies stays unused (§5.2.4 C). Our tag in
//! it was never used, but its peer's tag and TSNs are those of data that was delivered. Since a peer draws a new tag
//! for each association, a cookie is refused if its peer's tag belongs to an association that ended after the cookie
//! was made.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rexmit_core::Instant;
use rustc_hash::FxHashMap;

/// The most tags remembered; beyond it, the oldest are forgotten.
pub(super) const MAX_RETIRED_TAGS: usize = 65_536;

/// How an association ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// We sent SHUTDOWN COMPLETE, for which the peer may still wait.
    ShutdownComplete,
    Other,
}

/// The verification tags of associations that have ended, as long as their cookies are valid.
#[derive(Debug)]
pub(super) struct RetiredTags {
    /// The life of the longest-lived cookie.
    life: Duration,
    order: VecDeque<(Instant, u32)>,
    /// By our own tag: how the association ended, and until when that is remembered. Tags are our own random numbers, so
    /// that a fast hash is safe.
    tags: FxHashMap<u32, (Instant, Ending)>,
    peer_order: VecDeque<(Instant, u32)>,
    /// When an association with this tag of the peer ended. The peer chooses the tag, so that the map is ordered
    /// instead of hashed.
    peer_tags: BTreeMap<u32, Instant>,
}

impl RetiredTags {
    pub(super) fn new(life: Duration) -> Self {
        Self {
            life,
            order: VecDeque::new(),
            tags: FxHashMap::default(),
            peer_order: VecDeque::new(),
            peer_tags: BTreeMap::new(),
        }
    }

    /// Called when the association that had `tag` has ended: remembers the tag.
    pub(super) fn retire(&mut self, now: Instant, tag: u32, ending: Ending) {
        self.forget_expired(now);
        if self.order.len() >= MAX_RETIRED_TAGS {
            self.forget_first();
        }
        let until = now + self.life;
        if self.tags.insert(tag, (until, ending)).is_none() {
            self.order.push_back((until, tag));
        }
    }

    /// Records the tag of an ended association's peer; zero is not a valid tag.
    pub(super) fn retire_peer(&mut self, now: Instant, tag: u32) {
        self.forget_expired(now);
        if tag == 0 {
            return;
        }
        if self.peer_order.len() >= MAX_RETIRED_TAGS {
            self.forget_first_peer();
        }
        self.peer_tags.insert(tag, now);
        self.peer_order.push_back((now, tag));
    }

    /// Whether an association whose peer had `tag` has ended since `created`.
    pub(super) fn contains_peer(&self, tag: u32, created: Instant) -> bool {
        self.peer_tags.get(&tag).is_some_and(|&ended| created < ended)
    }

    /// Whether a cookie with `tag` comes from an association that has ended.
    pub(super) fn contains(&self, tag: u32) -> bool {
        self.tags.contains_key(&tag)
    }

    /// Whether the association that had `tag` ended by a SHUTDOWN COMPLETE of ours, no longer ago than a cookie is valid.
    pub(super) fn has_completed_shutdown(&self, now: Instant, tag: u32) -> bool {
        let ended = self.tags.get(&tag);
        ended.is_some_and(|&(until, ending)| ending == Ending::ShutdownComplete && now <= until)
    }

    fn forget_expired(&mut self, now: Instant) {
        while self.order.front().is_some_and(|&(until, _)| until < now) {
            self.forget_first();
        }
        let life = self.life;
        while self.peer_order.front().is_some_and(|&(ended, _)| ended + life < now) {
            self.forget_first_peer();
        }
    }

    fn forget_first_peer(&mut self) {
        let Some((ended, tag)) = self.peer_order.pop_front() else { return };
        // Another one with that tag may have ended later.
        if self.peer_tags.get(&tag) == Some(&ended) {
            self.peer_tags.remove(&tag);
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, tag)) = self.order.pop_front() {
            self.tags.remove(&tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_remembered_for_the_life_of_a_cookie() {
        let mut retired = RetiredTags::new(Duration::from_secs(60));
        retired.retire(Instant::ZERO, 1, Ending::Other);
        retired.retire(Instant::from_millis(60_000), 2, Ending::Other);
        assert!(retired.contains(1) && retired.contains(2) && !retired.contains(3));
        retired.retire(Instant::from_millis(60_001), 3, Ending::Other);
        assert!(!retired.contains(1) && retired.contains(2));
    }

    #[test]
    fn a_tag_of_a_peer_is_remembered_against_older_cookies() {
        let ms = Instant::from_millis;
        let mut retired = RetiredTags::new(Duration::from_secs(60));
        retired.retire_peer(ms(10), 1);
        retired.retire_peer(ms(10), 0);
        retired.retire_peer(ms(20), 1);
        assert!(retired.contains_peer(1, ms(19)) && !retired.contains_peer(1, ms(20)));
        assert!(!retired.contains_peer(2, ms(0)) && !retired.contains_peer(0, ms(0)));
        retired.retire_peer(ms(60_011), 2);
        assert!(retired.contains_peer(1, ms(19)), "it ended again at 20 ms");
        retired.retire_peer(ms(60_021), 3);
        assert!(!retired.contains_peer(1, ms(19)) && retired.contains_peer(2, ms(19)));
        for tag in 0..=MAX_RETIRED_TAGS as u32 {
            retired.retire_peer(ms(60_021), 10 + tag);
        }
        let kept = (retired.peer_order.len(), retired.peer_tags.len());
        assert_eq!(kept, (MAX_RETIRED_TAGS, MAX_RETIRED_TAGS));
    }

    #[test]
    fn no_more_tags_than_the_limit_are_remembered() {
        let mut retired = RetiredTags::new(Duration::from_secs(60));
        for tag in 0..=MAX_RETIRED_TAGS as u32 {
            retired.retire(Instant::ZERO, tag, Ending::ShutdownComplete);
        }
        assert_eq!((retired.order.len(), retired.tags.len()), (MAX_RETIRED_TAGS, MAX_RETIRED_TAGS));
        assert!(!retired.contains(0) && retired.contains(1));
    }
}
