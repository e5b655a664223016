//! Verification tags of associations that have ended.
//!
//! A state cookie is good for its whole life, and a network may deliver it late or twice. Without
//! a memory of its own tag, an endpoint would begin an association that has ended a second time,
//! with the same tag and the same TSNs, and deliver anew what travelled with the cookie. RFC 9260
//! leaves this to the cookie's life (§5.1.3).

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;
use rustc_hash::FxHashSet;

/// Tags remembered at most; beyond it the oldest are forgotten first.
pub(super) const MAX_RETIRED_TAGS: usize = 65_536;

/// See the module.
#[derive(Debug)]
pub(super) struct RetiredTags {
    /// The life of the longest-lived cookie.
    life: Duration,
    order: VecDeque<(Instant, u32)>,
    /// Our own random numbers, so that a fast hash is safe.
    tags: FxHashSet<u32>,
}

impl RetiredTags {
    pub(super) fn new(life: Duration) -> Self {
        Self { life, order: VecDeque::new(), tags: FxHashSet::default() }
    }

    /// The association that had `tag` has ended.
    pub(super) fn retire(&mut self, now: Instant, tag: u32) {
        self.forget_expired(now);
        if self.order.len() >= MAX_RETIRED_TAGS {
            self.forget_first();
        }
        if self.tags.insert(tag) {
            self.order.push_back((now + self.life, tag));
        }
    }

    /// Whether a cookie with `tag` comes from an association that has ended.
    pub(super) fn contains(&self, tag: u32) -> bool {
        self.tags.contains(&tag)
    }

    fn forget_expired(&mut self, now: Instant) {
        while self.order.front().is_some_and(|&(until, _)| until < now) {
            self.forget_first();
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
        retired.retire(Instant::ZERO, 1);
        retired.retire(Instant::from_millis(60_000), 2);
        assert!(retired.contains(1) && retired.contains(2) && !retired.contains(3));
        retired.retire(Instant::from_millis(60_001), 3);
        assert!(!retired.contains(1) && retired.contains(2));
    }

    #[test]
    fn no_more_tags_than_the_limit_are_remembered() {
        let mut retired = RetiredTags::new(Duration::from_secs(60));
        for tag in 0..=MAX_RETIRED_TAGS as u32 {
            retired.retire(Instant::ZERO, tag);
        }
        assert_eq!((retired.order.len(), retired.tags.len()), (MAX_RETIRED_TAGS, MAX_RETIRED_TAGS));
        assert!(!retired.contains(0) && retired.contains(1));
    }
}
