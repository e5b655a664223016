//! The verification tags that one of several endpoints at the same address draws, so that a tag names its endpoint.

/// The tags that are `residue` modulo `modulus`; by default all tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagClass {
    modulus: u32,
    residue: u32,
}

impl TagClass {
    /// The tags that are `residue` modulo `modulus`. `None` if the residue is not below the modulus.
    #[must_use]
    pub const fn new(modulus: u32, residue: u32) -> Option<Self> {
        if residue < modulus { Some(Self { modulus, residue }) } else { None }
    }

    /// The tag of the class that has the quotient of `tag`; `None` beyond 32 bits. Random tags yield random ones.
    pub(super) const fn nearest(self, tag: u32) -> Option<u32> {
        (tag - tag % self.modulus).checked_add(self.residue)
    }
}

impl Default for TagClass {
    fn default() -> Self {
        Self { modulus: 1, residue: 0 }
    }
}

impl super::Endpoint {
    /// Draws the local tags of new associations from a class: the endpoint is one of `modulus` behind an address, to which a
    /// driver gives packets by their tags. They share the budget of what answers to INITs may exceed three times the
    /// bytes received. Call it before the first association.
    pub const fn set_tags(&mut self, tags: TagClass) {
        self.tags = tags;
        self.excess.set_shares(tags.modulus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_of_their_class_and_all_tags_by_default() {
        for tag in [0, 1, 6, 7, 8, 1 << 31, u32::MAX - 4, u32::MAX] {
            assert_eq!(TagClass::default().nearest(tag), Some(tag));
            for residue in 0..7 {
                let nearest = TagClass::new(7, residue).unwrap().nearest(tag);
                // 2^32 is 4 modulo 7: the last quotient has four residues.
                assert_eq!(
                    nearest.is_none(),
                    tag >= u32::MAX - 3 && residue > 3,
                    "{tag} {residue}"
                );
                assert!(nearest.is_none_or(|it| it % 7 == residue && it / 7 == tag / 7));
            }
        }
        assert_eq!(TagClass::new(7, 7), None);
    }
}
