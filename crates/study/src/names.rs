//! Names of quantities: abbreviations for several names, and checks that they are measured.

use rexmit_lab::scenario::{Catalogue, Described, Unit};

use crate::fields::Located;
use crate::mistake::{Notes, alternatives};

/// Largest number of names in one abbreviation.
pub(crate) const MAX_NAMES: usize = 256;

/// The kind of value that a name denotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Quantity,
    Distribution,
    Series,
}

impl Sort {
    pub(crate) fn of(self, catalogue: &Catalogue) -> &[Described] {
        match self {
            Self::Quantity => &catalogue.quantities,
            Self::Distribution => &catalogue.distributions,
            Self::Series => &catalogue.series,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Quantity => "quantity",
            Self::Distribution => "distribution",
            Self::Series => "series",
        }
    }
}

/// Expands braces: `game.rtx{1,2}.{mean,p99}` stands for four names, where the last braces change fastest. Unpaired
/// braces are left unchanged, which results in an unknown name.
pub(crate) fn expand(notes: &Notes, names: &[Located<String>]) -> Vec<Located<String>> {
    let mut all = Vec::new();
    for name in names {
        let mut forms = vec![String::new()];
        let mut rest = name.value.as_str();
        while let Some((before, choices, after)) = braces(rest) {
            let choices: Vec<&str> = choices.split(',').map(str::trim).collect();
            if forms.len() * choices.len() > MAX_NAMES {
                let what = format!("this stands for more than {MAX_NAMES} names");
                notes.add(name.at, what);
                return Vec::new();
            }
            let with = |form: &String| -> Vec<String> {
                choices.iter().map(|choice| format!("{form}{before}{choice}")).collect()
            };
            forms = forms.iter().flat_map(with).collect();
            rest = after;
        }
        all.extend(forms.into_iter().map(|form| Located::new(form + rest, name.at)));
    }
    all
}

/// The quantity of the flow `flow` that `name` is of another: `game.rtx1.mean` of `other` is `other.rtx1.mean`.
pub(crate) fn of_flow(name: &str, flow: &str) -> String {
    name.split_once('.').map_or_else(|| flow.to_owned(), |(_, part)| format!("{flow}.{part}"))
}

fn braces(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (choices, after) = rest.split_once('}')?;
    Some((before, choices, after))
}

/// The catalogue entry of `name`; `None` if it is not measured.
pub(crate) fn described<'a>(
    catalogue: &'a Catalogue,
    sort: Sort,
    name: &str,
) -> Option<&'a Described> {
    sort.of(catalogue).iter().find(|described| described.name == name)
}

/// The unit of `name`. If it is not measured, notes a mistake that names `place`.
pub(crate) fn unit(
    notes: &Notes,
    catalogue: &Catalogue,
    sort: Sort,
    name: &Located<String>,
    place: &str,
) -> Option<Unit> {
    let found = described(catalogue, sort, &name.value);
    if found.is_none() {
        let known = sort.of(catalogue).iter().map(|described| described.name.as_str());
        let other = alternatives(&name.value, known);
        let what = format!("no {} `{}` is measured{place}; {other}", sort.word(), name.value);
        notes.add(name.at, what);
    }
    found.map(|described| described.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(name: &str) -> Vec<String> {
        let names = [Located::new(name.to_owned(), 0)];
        expand(&Notes::default(), &names).into_iter().map(|name| name.value).collect()
    }

    #[test]
    fn braces_stand_for_each_of_their_words() {
        assert_eq!(expanded("a.b"), ["a.b"]);
        assert_eq!(expanded("a{1, 2}.{x,y}z"), ["a1.xz", "a1.yz", "a2.xz", "a2.yz"]);
        assert_eq!(expanded("a{1"), ["a{1"]);
        assert_eq!(expanded("a}{1"), ["a}{1"]);
    }

    #[test]
    fn short_forms_are_bounded() {
        assert_eq!(expanded(&"{a,b}".repeat(8)).len(), MAX_NAMES);
        assert!(expanded(&"{a,b}".repeat(9)).is_empty());
    }
}
