use crate::redundancy::*;

#[test]
fn units_are_taken_in_order() {
    let mut copies = Copies::before(100);
    [99, 36, 50].into_iter().for_each(|unit| copies.insert(unit));
    assert_eq!(copies.first(), Some(36));
    assert_eq!(copies.collect::<Vec<_>>(), [36, 50, 99]);
    assert_eq!(Copies::before(0).next(), None);
}
