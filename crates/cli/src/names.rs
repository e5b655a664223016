//! Messages for unknown names.

/// A message that `kind` has no `name`, with the most similar known name, or a list of all if none is similar.
pub(crate) fn unknown<'a>(
    kind: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let help = match nearest(name, &known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    format!("there is no {kind} `{name}`: {help}")
}

/// The known name that begins with `name`, or differs from it in at most a third of its letters.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let near = known.iter().map(|known| (strsim::osa_distance(name, known), *known));
    let near = near.filter(|(distance, _)| *distance <= limit).min();
    let begins = || known.iter().copied().find(|known| name.len() >= 3 && known.starts_with(name));
    near.map(|(_, known)| known).or_else(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_suggested_and_a_different_one_is_not() {
        let known = ["rfc9260", "interactive", "interactive-redundant", "thin"];
        assert_eq!(nearest("interactiv", &known), Some("interactive"));
        assert_eq!(nearest("rfc9620", &known), Some("rfc9260"));
        assert_eq!(nearest("inter", &known), Some("interactive"));
        assert_eq!(nearest("fast", &known), None);
        assert_eq!(
            unknown("profile", "thn", known),
            "there is no profile `thn`: did you mean `thin`?"
        );
        assert_eq!(
            unknown("profile", "fast", known),
            "there is no profile `fast`: there are rfc9260, interactive, interactive-redundant, thin"
        );
    }
}
