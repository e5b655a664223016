//! What associations with the same destination spend on copies, together (RFC 8699's idea): fifty streams of a server to
//! one network have one account, with the credit for a burst of copies of one stream, not of fifty.
//!
//! The account begins when there are two: an association that is alone with its destination has its own. Which copies a
//! budget allows is the matter of each association, whose percentages apply to the account. Those without a limited
//! budget have no part in it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use rexmit_recovery::SharedSpending;

use super::lookup::Slot;
use crate::association::Association;

/// A host, or a network of IPv6 (/64), whose hosts are often one. IPv4 addresses are mapped to IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Destination(Ipv6Addr);

impl Destination {
    /// The destination of the copies of `association`, if its budget of copies is limited: that of its primary path.
    fn of(association: &Association) -> Option<Self> {
        let budget = association.config().recovery.thin.copy_budget;
        let is_limited = budget.packets_percent.or(budget.bytes_percent).is_some();
        let is_open = !association.state().is_closed();
        (is_limited && is_open).then(|| Self::at(association.primary_route().remote.ip()))
    }

    fn at(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64),
        })
    }
}

/// The accounts, one for each destination of an association that has not ended.
#[derive(Debug, Default)]
pub(super) struct Destinations(BTreeMap<Destination, Account>);

#[derive(Debug, Default)]
struct Account {
    associations: usize,
    /// `None` before there are two.
    spending: Option<Box<SharedSpending>>,
}

impl Destinations {
    /// Called before and after the association is called: lends it the account, and takes that back.
    pub(super) fn exchange(&mut self, slot: &mut Slot) {
        if let Some(destination) = slot.destination
            && let Some(account) = self.0.get_mut(&destination)
            && let Some(spending) = &mut account.spending
        {
            spending.swap(&mut slot.association.outbound().recovery);
        }
    }

    /// Called after the association was called, and the account taken back: enters a new destination.
    #[inline]
    pub(super) fn follow(&mut self, slot: &mut Slot) {
        if !Self::is_followed(slot) {
            self.change(slot, Destination::of(&slot.association));
        }
    }

    /// Whether the destination of the association is the one that was entered.
    #[inline]
    pub(super) fn is_followed(slot: &Slot) -> bool {
        Destination::of(&slot.association) == slot.destination
    }

    fn change(&mut self, slot: &mut Slot, destination: Option<Destination>) {
        let before = std::mem::replace(&mut slot.destination, destination);
        if let Some(before) = before
            && let Some(account) = self.0.get_mut(&before)
        {
            account.associations -= 1;
            if account.associations == 0 {
                self.0.remove(&before);
            }
        }
        if let Some(destination) = destination {
            let account = self.0.entry(destination).or_default();
            account.associations += 1;
            if account.associations > 1 {
                account.spending.get_or_insert_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_ipv4_and_networks_of_ipv6_are_destinations() {
        let at = |text: &str| Destination::at(text.parse().unwrap());
        assert_eq!(at("192.0.2.1"), at("::ffff:192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::2:3"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
    }
}
