//! The secrets that state cookies are signed with: one for each epoch; cookies of the last two epochs are accepted (RFC
//! 9260 §5.1.3).
//!
//! No secret can be computed from another. Each is derived from a state that a one-way function advances, and the
//! previous state is overwritten: the memory of an endpoint reveals nothing about cookies signed with older secrets
//! than the last two. [`Secrets::mix`] adds entropy, so that future secrets cannot be computed from an earlier state
//! either.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use rexmit_core::{Instant, Seed};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a signature: HMAC-SHA-256.
pub(super) const MAC_LEN: usize = 32;

type Key = Zeroizing<[u8; 32]>;

/// The secrets of state cookies: the present one, the one before, and the state that the next ones are
/// derived from.
pub(super) struct Secrets {
    state: Key,
    lifetime: Duration,
    current: EpochSecret,
    previous: Option<EpochSecret>,
}

/// The secret of one epoch, with the epoch's number.
pub(super) struct EpochSecret {
    epoch: u64,
    key: Key,
}

impl Secrets {
    /// Derives the first secret from `seed`; each secret is used for `lifetime`.
    pub(super) fn new(seed: &Seed, lifetime: Duration) -> Self {
        let mut state = Key::default();
        seed.split("state cookie").rng().fill(&mut *state);
        let current = EpochSecret { epoch: 0, key: step(&mut state) };
        Self { state, lifetime, current, previous: None }
    }

    fn epoch(&self, at: Instant) -> u64 {
        let lifetime = self.lifetime.as_nanos().max(1);
        u64::try_from(u128::from(at.as_nanos()) / lifetime).unwrap_or(u64::MAX)
    }

    /// The secret to sign with at `now`.
    pub(super) fn at(&mut self, now: Instant) -> &EpochSecret {
        let epoch = self.epoch(now);
        if epoch > self.current.epoch {
            let next = EpochSecret { epoch, key: step(&mut self.state) };
            let before = std::mem::replace(&mut self.current, next);
            self.previous = Some(before).filter(|before| before.epoch + 1 == epoch);
        }
        &self.current
    }

    /// The secret in use at `created`, unless that is too long ago.
    pub(super) fn of(&self, created: Instant, now: Instant) -> Option<&EpochSecret> {
        let (epoch, present) = (self.epoch(created), self.epoch(now));
        if created > now || present - epoch > 1 {
            return None;
        }
        std::iter::once(&self.current).chain(&self.previous).find(|secret| secret.epoch == epoch)
    }

    /// Mixes `entropy` into future secrets.
    pub(super) fn mix(&mut self, entropy: &[u8; 32]) {
        let mut mac = keyed(&self.state);
        mac.update(b"mix");
        mac.update(entropy);
        self.state.copy_from_slice(&mac.finalize().into_bytes());
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl EpochSecret {
    pub(super) fn sign(&self, content: &[u8]) -> [u8; MAC_LEN] {
        let mut mac = keyed(&self.key);
        mac.update(b"cookie");
        mac.update(content);
        mac.finalize().into_bytes().into()
    }

    pub(super) fn verifies(&self, content: &[u8], signature: &[u8]) -> bool {
        let mut mac = keyed(&self.key);
        mac.update(b"cookie");
        mac.update(content);
        mac.verify_slice(signature).is_ok()
    }

    /// Encrypts or decrypts Tie-Tags with a one-time pad computed from the secret and `nonce`.
    pub(super) fn encrypt_tie_tags(&self, nonce: &[u8; 16], tie_tags: (u32, u32)) -> (u32, u32) {
        let mut mac = keyed(&self.key);
        mac.update(b"tie tags");
        mac.update(nonce);
        let pad = mac.finalize().into_bytes();
        let word = |at: usize| u32::from_be_bytes([pad[at], pad[at + 1], pad[at + 2], pad[at + 3]]);
        (tie_tags.0 ^ word(0), tie_tags.1 ^ word(4))
    }
}

/// Advances `state`, and returns the key derived from it.
fn step(state: &mut Key) -> Key {
    let derive = |label: &[u8]| {
        let mut mac = keyed(state);
        mac.update(label);
        Key::new(mac.finalize().into_bytes().into())
    };
    let (key, next) = (derive(b"key"), derive(b"next"));
    *state = next;
    key
}

fn keyed(key: &Key) -> Hmac<Sha256> {
    Hmac::new_from_slice(&**key).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets::new(&Seed::from_u64(1), Duration::from_secs(1))
    }

    fn key_at(secrets: &mut Secrets, seconds: u64) -> [u8; 32] {
        *secrets.at(Instant::from_millis(seconds * 1_000)).key
    }

    #[test]
    fn each_epoch_has_a_secret_of_its_own() {
        let mut secrets = secrets();
        let keys = [0, 1, 2, 9].map(|seconds| key_at(&mut secrets, seconds));
        for (n, key) in keys.iter().enumerate() {
            assert!(!keys[..n].contains(key));
        }
        assert_eq!(key_at(&mut secrets, 9), keys[3]);
    }

    #[test]
    fn no_more_than_the_last_two_secrets_are_kept() {
        let at = |seconds: u64| Instant::from_millis(seconds * 1_000);
        let mut secrets = secrets();
        for seconds in 0..=5 {
            key_at(&mut secrets, seconds);
        }
        let kept = |secrets: &Secrets, epoch, now| secrets.of(at(epoch), at(now)).is_some();
        assert!(kept(&secrets, 5, 5) && kept(&secrets, 4, 5) && !kept(&secrets, 3, 4));
        // After a pause there is no previous one.
        key_at(&mut secrets, 8);
        assert!(kept(&secrets, 8, 8) && !kept(&secrets, 5, 6) && secrets.previous.is_none());
    }

    /// The state after a step does not reveal the key of that step or an earlier one: the previous state is
    /// overwritten, also in its old place.
    #[test]
    fn a_step_overwrites_the_state() {
        let mut secrets = secrets();
        let before = secrets.state.clone();
        key_at(&mut secrets, 1);
        assert_ne!(secrets.state, before);
        let mut replayed = before.clone();
        assert_eq!(*step(&mut replayed), key_at(&mut secrets, 1), "from the state before it can");
        let mut onward = secrets.state.clone();
        assert_ne!(*step(&mut onward), key_at(&mut secrets, 1));
    }

    #[test]
    fn entropy_changes_the_secrets_to_come_and_not_the_present_one() {
        let (mut plain, mut mixed) = (secrets(), secrets());
        mixed.mix(&[1; 32]);
        assert_eq!(key_at(&mut plain, 0), key_at(&mut mixed, 0));
        assert_ne!(key_at(&mut plain, 1), key_at(&mut mixed, 1));
    }
}
