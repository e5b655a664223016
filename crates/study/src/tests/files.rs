//! Refused files, and the messages.

use super::kit::{SCENARIO, TWO_AXES, study, with};
use crate::{MAX_BYTES, MAX_MISTAKES, MAX_RUNS};

/// The mistakes reported for `text`, which begins in line 4 of its file.
fn told(text: &str) -> Vec<String> {
    let mistakes = with(text).expect_err("it is wrong");
    mistakes.to_string().lines().map(|line| line.replacen("test.toml:", "", 1)).collect()
}

#[test]
fn mistakes_are_reported_with_their_position_and_the_alternatives() {
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
            &["7:1: `set` has no `{}` to be replaced by the values"],
        ),
        (
            "[[axis]]\nname = \"a\"\nvalues = [1, 2]\nlabels = [\"x\"]\nset.duration = \"{}h\"",
            &["7:10: there are 2 `values` but 1 `labels`"],
        ),
        (
            "[[axis]]\nname = \"a\"\npoint = [{ label = \"x\" }, { label = \"x\", number = 1 }]",
            &[
                "4:1: either all points of an axis have a number or none",
                "6:37: there is already a point `x`",
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
            &["8:1: there is already an axis `a`"],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(told(text), *expected, "of {text}");
    }
}

#[test]
fn mistakes_in_the_base_are_reported_once_at_their_line() {
    let axis =
        "[[axis]]\nname = \"a\"\nvalues = [1, 2]\nset.thin.game.traffic = \"every {}s size 9\"\n";
    let wrong = SCENARIO.replace("\"1h\"", "7").replace("forward", "forwards");
    let mistakes = study(&format!("title = \"x\"\nseeds = [1, 2, 1]\n{axis}{wrong}")).unwrap_err();
    assert_eq!(
        mistakes.to_string(),
        "test.toml:2:9: the seed 1 is listed twice\n\
         test.toml:8:12: invalid type: integer `7`, expected a string\n\
         test.toml:10:1: unknown field `forwards`; did you mean `forward`?"
    );
    let mistakes = study("title = \"x\"\nseeds = 0\n").unwrap_err();
    let lines: Vec<_> = mistakes.list.iter().map(|mistake| mistake.what.as_str()).collect();
    assert_eq!(lines, ["a study needs `scenario`", "a study has at least one seed"]);
}

/// The mistakes reported of a claim or figure `text`, which begins in line 5 of its file, after the two axes
/// at its end.
fn told_of(table: &str, text: &str) -> Vec<String> {
    told(&format!("[[{table}]]\n{text}\n{TWO_AXES}"))
}

/// The beginning of a claim.
const HEAD: &str = "says = \"x\"\nquantity = \"game.rtx1.mean\"\n";

/// Checks that each claim is refused with these messages, in any order.
#[track_caller]
fn assert_claims_are_refused(table: &[(String, &[&str])]) {
    for (text, expected) in table {
        let mut expected = expected.to_vec();
        let mut told = told_of("claim", text);
        expected.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, expected, "of {text}");
    }
}

#[test]
fn claims_that_cannot_be_evaluated_are_refused() {
    let head = HEAD;
    let table: &[(String, &[&str])] = &[
        (
            "is = \"below\"".into(),
            &["4:1: a claim needs `quantity`", "4:1: a claim needs `says`"],
        ),
        (
            format!("{head}is = \"bellow\"\nthan = 1"),
            &["7:6: `is` cannot be `bellow`; did you mean `below`?"],
        ),
        (
            format!("{head}is = \"below\"\nthan = 1\ntolerance = 0.1"),
            &["9:1: a claim with `below` or `above` has no `tolerance`; known: `at`, \
               `averaged`, `by`, `gain_over`, `is`, `largest`, `loss_against`, `paper`, `pooled`, `quantity`, \
               `says`, `than`"],
        ),
        (
            format!("{head}at.sytem = \"thin\"\nis = \"above\"\nthan.at.system = \"thinn\""),
            &[
                "7:4: there is no axis `sytem`; did you mean `system`?",
                "9:18: the axis `system` has no `thinn`; did you mean `thin`?",
            ],
        ),
        (
            "says = \"x\"\nquantity = \"game.rtx7.mean\"\nis = \"above\"\nthan.quantity = \"game.latency.men\"".into(),
            &[
                "6:12: no quantity `game.rtx7.mean` is measured; did you mean `game.rtx1.mean`?",
                "8:17: no quantity `game.latency.men` is measured; did you mean `game.latency.mean`?",
            ],
        ),
        (
            format!("{head}is = \"above\"\nthan.quantity = \"game.loss_share\""),
            &["8:17: `game.rtx1.mean` and `game.loss_share` have different units"],
        ),
        (
            format!("{head}at.system = \"thin\"\nis = \"above\"\nthan.at.system = [\"thin\"]\nat.interarrival = 50"),
            &["4:1: `game.rtx1.mean` at system \"thin\", interarrival \"50 ms\" is compared with itself"],
        ),
        (
            format!("{head}is = \"within\"\nthan = 1"),
            &["4:1: a claim with `within` needs `tolerance`"],
        ),
        (
            format!("{head}is = \"like\"\nthan = 1\ndistance = 2"),
            &[
                "6:12: no distribution `game.rtx1.mean` is measured; known: `game.latency`",
                "8:8: `than` is a table with another distribution, not this integer",
                "9:12: `distance` is a share from 0 to 1",
            ],
        ),
        (
            format!("{head}is = \"rising\"\nalong = \"interarival\""),
            &["8:9: there is no axis `interarival`; did you mean `interarrival`?"],
        ),
        (
            format!("{head}is = \"rising\"\nalong = \"system\"\nover = [\"thin\"]"),
            &["8:9: `system` needs two labels at least"],
        ),
        (
            format!("{head}is = \"above\"\nthan = 1\naveraged = [\"interarival\"]"),
            &["9:13: there is no axis `interarival`; did you mean `interarrival`?"],
        ),
    ];
    assert_claims_are_refused(table);
}

#[test]
fn claims_that_choose_no_points_are_refused() {
    let head = HEAD;
    let table: &[(String, &[&str])] = &[
        (
            format!("{head}is = \"above\"\nthan = 1\naveraged = \"system\"\nlargest = \"system\""),
            &["4:1: `averaged` and `largest` exclude each other"],
        ),
        (
            format!("{head}is = \"above\"\nthan = 1\ngain_over.at.interarrival = [50, 100]"),
            &["9:1: `gain_over` chooses one point: `at`, with a label per axis, or another `flow`"],
        ),
        (
            format!(
                "{head}at.system = \"thin\"\nis = \"above\"\nthan.gain_over.at.system = \"lksctp\"\nthan.times = 2"
            ),
            &["9:1: only the right side is a gain"],
        ),
        (
            format!("{head}is = \"above\"\nthan = 1\nloss_against = {{}}"),
            &[
                "9:16: `loss_against` chooses one point: `at`, with a label per axis, or another `flow`",
            ],
        ),
        (
            format!(
                "{head}is = \"above\"\nthan = 1\naveraged = \"system\"\ngain_over.at.system = \"thin\""
            ),
            &["10:1: all points of `system` are combined: `at` cannot select any"],
        ),
        (
            format!("{head}at.system = \"thin\"\nis = \"above\"\nthan = 1\nlargest = [\"system\"]"),
            &["4:1: all points of `system` are combined: `at` cannot select any"],
        ),
        (
            format!(
                "{head}is = \"above\"\nthan.times = 2\nthan.at.system = \"thin\"\nlargest = \"system\""
            ),
            &["8:1: all points of `system` are combined: `at` cannot select any"],
        ),
        (
            format!(
                "{head}is = \"above\"\nthan.times = 2\nlargest = [\"system\", \"interarrival\"]"
            ),
            &["4:1: `game.rtx1.mean` is compared with itself"],
        ),
        (
            format!("{head}is = \"rising\"\nalong = \"system\"\naveraged = [\"system\"]"),
            &["8:9: a claim along `system` cannot combine its points"],
        ),
        (
            "says = \"x\"\nquantity = \"game.latency\"\nat.system = \"lksctp\"\nis = \"like\"\n\
             than.at.system = \"thin\"\ndistance = 0.1\naveraged = \"interarrival\""
                .into(),
            &[
                "11:1: a claim with `like` has no `averaged`; known: `at`, `distance`, `grain`, `is`, \
               `paper`, `quantity`, `says`, `than`",
            ],
        ),
        (
            format!(
                "{head}is = \"above\"\nthan.times = 0\nthan.quantity = \"game.{{rtx1,rtx2}}.mean\""
            ),
            &["8:14: `times` is above 0", "8:1: `than` has 2 quantities, not 1"],
        ),
    ];
    assert_claims_are_refused(table);
}

#[test]
fn quantities_of_some_cells_are_refused_in_others() {
    let axes = TWO_AXES.replace(
        "label = \"thin\"\nset.thin.game.profile = \"thin\"",
        "label = \"old\"\nset.thin.game.profile = \"rfc9260\"",
    );
    let claim = "[[claim]]\nsays = \"x\"\nquantity = \"game.extra\"\nis = \"below\"\nthan = 2\n";
    let mistakes = told(&format!("{claim}{axes}"));
    assert_eq!(mistakes.len(), 1);
    let expected =
        "6:12: no quantity `game.extra` is measured at system \"old\", interarrival \"50 ms\"; ";
    assert!(mistakes[0].starts_with(expected), "{mistakes:?}");
    with(&format!("{claim}at.system = \"lksctp\"\n{axes}")).expect("it is measured there");
}

#[test]
fn figures_that_cannot_be_drawn_are_refused() {
    let head = "title = \"x\"\n";
    let table: &[(String, &[&str])] = &[
        (
            format!("{head}kind = \"pie\""),
            &["6:8: `kind` cannot be `pie`; known: `bars`, `ccdf`, `cdf`, `lines`, `scatter`, \
               `series`, `stacked-bars`"],
        ),
        (
            format!("{head}kind = \"lines\"\ny = \"game.rtx9.mean\"\nx = \"interarrival\""),
            &["7:5: no quantity `game.rtx9.mean` is measured; did you mean `game.rtx1.mean`?"],
        ),
        (
            format!(
                "{head}kind = \"lines\"\ny = [\"game.rtx1.mean\", \"game.loss_share\"]\nx = \"system\""
            ),
            &["7:24: `game.loss_share` has another unit than the previous ones"],
        ),
        (
            format!("{head}kind = \"bars\"\nx = [\"a\", \"b\"]\ny = \"game.rtx1.mean\""),
            &["8:5: there are 2 categories in `x`, but 1 quantities"],
        ),
        (
            format!("{head}kind = \"ccdf\"\nx = \"game.latncy\"\nx_axis.lable = \"t\""),
            &[
                "7:5: no distribution `game.latncy` is measured; did you mean `game.latency`?",
                "8:8: an axis of a figure has no `lable`; did you mean `label`?",
            ],
        ),
        (
            format!(
                "{head}kind = \"cdf\"\nx = \"game.latency\"\nx_axis = {{ lable = \"t\", range = [5, 1] }}"
            ),
            &[
                "8:12: an axis of a figure has no `lable`; did you mean `label`?",
                "8:33: `range` is a list of two ascending numbers, not a list",
            ],
        ),
        (
            format!("{head}kind = \"series\"\ny = \"game.rto\"\nx = 3"),
            &["8:1: a figure of a series has no `x`; did you mean `y`?"],
        ),
        (
            format!("{head}kind = \"series\"\ny = \"game.rto\"\nseed = 9"),
            &["8:8: no run has the seed 9"],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(told_of("figure", text), *expected, "of {text}");
    }
    let costs = told("costs = \"game.{loss_share,los_share}\"");
    assert_eq!(
        costs,
        ["4:9: no quantity `game.los_share` is measured; did you mean `game.loss_share`?"]
    );
}

#[test]
fn claims_and_figures_are_bounded() {
    let axis = "[[axis]]\nname = \"a\"\nset.duration = \"{}h\"\nvalues = [";
    let values: Vec<String> = (1..=201).map(|n: u32| n.to_string()).collect();
    let axis = format!("{axis}{}]\n", values.join(", "));
    let figure = "[[figure]]\ntitle = \"x\"\nkind = \"ccdf\"\nx = \"game.latency\"\n";
    let said = told(&format!("{figure}{axis}"));
    assert_eq!(said, ["4:1: 201 groups: a figure has at most 200; select some with `at`"]);
    let many = ["\"game.{rtx1,rtx2}.mean\""; 25].join(", ");
    let claim =
        format!("[[claim]]\nsays = \"x\"\nquantity = [{many}]\nis = \"below\"\nthan = 1\n{axis}");
    assert_eq!(told(&claim), ["4:1: a claim has at most 10000 comparisons"]);
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
    let axis = |name, count, set| {
        let values: Vec<String> = (1..=count).map(|n: u32| n.to_string()).collect();
        let values = values.join(", ");
        format!("[[axis]]\nname = \"{name}\"\nvalues = [{values}]\nset.{set}\"\n")
    };
    let hours = axis("a", 200, "duration = \"{}h");
    let sweep = hours + &axis("b", 100, "network.forward = \"delay {}ms");
    let too_many = "200 of `a` × 100 of `b` × 4 seeds: a study has at most 50000 runs";
    assert_eq!(MAX_RUNS, 50_000);
    assert_eq!(told(&sweep), [format!("4:1: {too_many}")]);

    let seeds = study("title = \"x\"\nseeds = 1001\nscenario = {}").unwrap_err();
    assert_eq!(seeds.to_string(), "test.toml:2:9: 1001 seeds: a study has at most 1000");

    let long = study(&"#".repeat(MAX_BYTES + 1)).unwrap_err();
    assert_eq!(long.to_string(), "test.toml:1:1: 1048577 bytes: a study has at most 1048576");

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

/// A folder of its own for files of the test `name`.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("rexmit-study-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn only_a_regular_file_of_bounded_size_is_read() {
    use crate::Study;

    let refused = |path: &std::path::Path| Study::load(path).unwrap_err().to_string();
    let folder = folder("kinds");
    let words = refused(&folder);
    assert!(words.ends_with("it is a directory: a study is a regular file"), "{words}");
    if cfg!(unix) {
        let words = refused(std::path::Path::new("/dev/zero"));
        assert!(words.ends_with("it is a pipe, socket or device: a study is a regular file"));
    }
    #[cfg(unix)]
    {
        // Opening a socket fails, and opening a pipe waits; neither is tried.
        let socket = folder.join("socket.toml");
        let _ = std::fs::remove_file(&socket);
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(refused(&socket).ends_with("device: a study is a regular file"));
    }
    let large = folder.join("large.toml");
    std::fs::File::create(&large).unwrap().set_len(1 << 30).unwrap();
    let words = refused(&large);
    assert!(words.ends_with("it is too large: a study has at most 1048576 bytes"), "{words}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_study_knows_how_to_run_it_again() {
    use crate::Study;

    assert_eq!(with("").unwrap().arguments, "test");
    let folder = folder("again");
    for (name, argument) in [
        ("mine.toml", "mine.toml"),
        ("mine", "./mine"),
        ("-mine.toml", "./-mine.toml"),
        ("it's mine.toml", r"'it'\''s mine.toml'"),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, format!("title = \"A\"\nseeds = 1\n{SCENARIO}")).unwrap();
        assert_eq!(Study::load(&path).unwrap().arguments, argument);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
