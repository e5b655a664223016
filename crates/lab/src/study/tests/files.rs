//! What is refused, with which words.

use super::kit::{SCENARIO, study, with};
use crate::study::{MAX_BYTES, MAX_MISTAKES, MAX_RUNS};

/// Every line that is told of `text`, which begins in line 4 of its file.
fn told(text: &str) -> Vec<String> {
    let mistakes = with(text).expect_err("it is wrong");
    mistakes.to_string().lines().map(|line| line.replacen("test.toml:", "", 1)).collect()
}

#[test]
fn mistakes_are_told_with_their_place_and_the_alternatives() {
    let table: &[(&str, &[&str])] = &[
        ("seed = 3", &["4:1: a study has no `seed`; did you mean `seeds`?"]),
        (
            "[[axis]]\nname = \"a\"\npoint = [{ label = \"x\", st.duration = \"2h\" }]",
            &["6:25: a point has no `st`; did you mean `set`?"],
        ),
        ("[[axis]]\nname = \"a\"", &["4:1: an axis needs `values` or `[[axis.point]]`"]),
        ("[[axis]]\nvalues = [1, 2]\nset.duration = \"{}h\"", &["4:1: an axis needs `name`"]),
        (
            "[[axis]]\nname = \"a\"\nvalues = [1, 2]\nset.duration = \"2h\"",
            &["7:1: `set` has no `{}`, where the values would stand"],
        ),
        (
            "[[axis]]\nname = \"a\"\nvalues = [1, 2]\nlabels = [\"x\"]\nset.duration = \"{}h\"",
            &["7:10: there are 2 `values` but 1 `labels`"],
        ),
        (
            "[[axis]]\nname = \"a\"\npoint = [{ label = \"x\" }, { label = \"x\", number = 1 }]",
            &[
                "4:1: either all points of an axis have a number or none",
                "6:37: there is another point `x` already",
            ],
        ),
        (
            "costs = 3\nabout = []",
            &[
                "4:9: `costs` is a string or a list of them, not this integer",
                "5:9: `about` is a string that is not empty, not a list",
            ],
        ),
        (
            "[[axis]]\nname = \"a\"\nvalues = [\"1h\", 2]\nset.duration = \"{}\"",
            &[
                "4:1: either all points of an axis have a number or none",
                "7:16: invalid type: integer `2`, expected a string (at a \"2\")",
            ],
        ),
        (
            "[[axis]]\nname = \"a\"\n[[axis.point]]\nlabel = \"x\"\nset.thin.game.profil = \"none\"\n\
             [[axis.point]]\nlabel = \"y\"\nset.thin.game.profile = \"none\"\nset.duratoin = 2",
            &[
                "8:15: unknown field `profil`; did you mean `profile`? (at a \"x\")",
                "11:15: thin.game.profile: there is no profile `none` (at a \"y\")",
                "12:5: unknown field `duratoin`; did you mean `duration`? (at a \"y\")",
            ],
        ),
        (
            "[[axis]]\nname = \"a\"\nvalues = [1]\nset.duration = \"{}h\"\n\
             [[axis]]\nname = \"a\"\nvalues = [1]\nset.duration = \"{}h\"",
            &["8:1: there is another axis `a` already"],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(told(text), *expected, "of {text}");
    }
}

#[test]
fn mistakes_of_the_base_are_told_once_at_their_line() {
    let axis = "[[axis]]\nname = \"a\"\nvalues = [1, 2]\nset.duration = \"{}h\"\n";
    let wrong = SCENARIO.replace("lksctp", "none").replace("forward", "forwards");
    let mistakes = study(&format!("title = \"x\"\nseeds = [1, 2, 1]\n{axis}{wrong}")).unwrap_err();
    assert_eq!(
        mistakes.to_string(),
        "test.toml:2:9: the seed 1 stands there twice\n\
         test.toml:9:1: missing field `forward`\n\
         test.toml:10:1: unknown field `forwards`; did you mean `forward`?"
    );
    let mistakes = study("title = \"x\"\nseeds = 0\n").unwrap_err();
    let lines: Vec<_> = mistakes.list.iter().map(|mistake| mistake.what.as_str()).collect();
    assert_eq!(lines, ["a study needs `scenario`", "a study has at least one seed"]);
}

#[test]
fn text_that_is_not_toml_is_refused_at_its_line() {
    for text in ["x = ", "[[axis]\n", "a = 1\na = 2", "\u{0}"] {
        let mistakes = told(text);
        assert!(mistakes.iter().all(|mistake| mistake.starts_with(['4', '5'])), "{mistakes:?}");
    }
}

#[test]
fn sizes_are_bounded() {
    let axis = |name, count| {
        let values: Vec<String> = (1..=count).map(|n: u32| n.to_string()).collect();
        let values = values.join(", ");
        format!("[[axis]]\nname = \"{name}\"\nvalues = [{values}]\nset.duration = \"{{}}h\"\n")
    };
    let sweep = format!("{}{}", axis("a", 200), axis("b", 100));
    let too_many = "200 of `a` × 100 of `b` × 4 seeds: a study has at most 50000 runs";
    assert_eq!(MAX_RUNS, 50_000);
    assert_eq!(told(&sweep), [format!("4:1: {too_many}")]);

    let seeds = study("title = \"x\"\nseeds = 1001\nscenario = {}").unwrap_err();
    assert_eq!(seeds.to_string(), "test.toml:2:9: 1001 seeds: a study has at most 1000");

    let long = study(&"#".repeat(MAX_BYTES + 1)).unwrap_err();
    assert_eq!(long.to_string(), "test.toml:1:1: 262145 bytes: a study has at most 262144");

    let wrong: String = (0..100).map(|n| format!("wrong{n} = 1\n")).collect();
    assert_eq!(told(&wrong).len(), MAX_MISTAKES);
}

#[test]
fn deep_tables_exhaust_no_stack() {
    let deep = format!("{}x = 1", "a.".repeat(MAX_BYTES / 2 - 8));
    assert!(study(&deep).is_err());
    let deep = format!("title = \"x\"\nseeds = 1\n[scenario]\n{}x = 1", "a.".repeat(100_000));
    assert!(study(&deep).is_err());
    assert!(study(&format!("x = {}", "[".repeat(100_000))).is_err());
}
