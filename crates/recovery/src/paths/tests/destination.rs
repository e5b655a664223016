use crate::PathState::{Active, Inactive, PotentiallyFailed, Unconfirmed};
use crate::paths::destination::*;
use crate::{PathState, Reach};

fn of(reaches: &[(PathState, u32)]) -> impl ExactSizeIterator<Item = Reach> + '_ {
    reaches.iter().map(|&(state, errors)| Reach::of(state, errors))
}

#[test]
fn new_data_take_the_primary_path_while_it_is_active() {
    let choose = |reaches: &[_], primary, current| data_path(of(reaches), primary, current);
    assert_eq!(choose(&[(Active, 0)], 0, 0), 0);
    assert_eq!(choose(&[(Active, 0), (Active, 5)], 1, 0), 1);
    let all = [(Inactive, 6), (Active, 0), (Active, 0)];
    assert_eq!(choose(&all, 0, 0), 1, "the next one after it");
    assert_eq!(choose(&all, 0, 2), 2, "one that works is kept");
    assert_eq!(choose(&[(Inactive, 6), (Unconfirmed, 0)], 0, 0), 0);
}

#[test]
fn without_an_active_path_the_fewest_errors_decide() {
    let choose = |reaches: &[_], primary| data_path(of(reaches), primary, primary);
    assert_eq!(choose(&[(PotentiallyFailed, 2), (PotentiallyFailed, 1)], 0), 1);
    assert_eq!(choose(&[(PotentiallyFailed, 1), (PotentiallyFailed, 1)], 1), 1);
    assert_eq!(choose(&[(Inactive, 6), (PotentiallyFailed, 5)], 0), 1);
    assert_eq!(choose(&[(Inactive, 9), (Inactive, 8)], 0), 1);
    assert_eq!(choose(&[(Inactive, 8), (Inactive, 8)], 0), 0);
}

#[test]
fn an_alternate_is_another_path_if_one_is_as_good() {
    let alternate = |path, reaches: &[_], primary| alternate_to(path, of(reaches), primary);
    assert_eq!(alternate(0, &[(Active, 0)], 0), 0);
    assert_eq!(alternate(0, &[(Active, 1), (Active, 0)], 0), 1);
    assert_eq!(alternate(1, &[(Active, 0), (Active, 0), (Active, 0)], 0), 0);
    assert_eq!(alternate(0, &[(Active, 1), (Active, 0), (Active, 0)], 0), 1);
    assert_eq!(alternate(0, &[(Active, 1), (Inactive, 6)], 0), 0, "an inactive one is not");
    assert_eq!(alternate(0, &[(Active, 1), (Unconfirmed, 0)], 0), 0);
    assert_eq!(alternate(0, &[(Inactive, 6), (Inactive, 6)], 0), 1);
    assert_eq!(alternate(0, &[(Inactive, 6), (Inactive, 7)], 0), 0);
}
