//! Figures from values that are known.

use rexmit_lab::scenario::Unit;

use super::kit::{TWO_AXES, page, with};
use crate::{Coordinate, DrawnFigure, FigureKind};

/// `rtx1.mean` is the interarrival time, 1000 more for lksctp, plus the seed; `rtx1.p99` ten times
/// that; `loss_share` a thousandth of the seed, `spurious_share` the double.
fn drawn(text: &str) -> DrawnFigure {
    let text = format!("{TWO_AXES}\n[[figure]]\ntitle = \"A figure\"\n{text}\n");
    let study = with(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut page = page(&study, |name, system, interarrival, seed| {
        let mean = if system == "thin" { 0.0 } else { 1000.0 } + interarrival + seed;
        match name {
            "game.rtx1.mean" => Some(mean),
            "game.rtx1.p99" => Some(10.0 * mean),
            "game.loss_share" => Some(seed / 1000.0),
            "game.spurious_share" => Some(seed / 500.0),
            _ => None,
        }
    });
    page.figures.remove(0)
}

/// Each group: its label, and its points.
fn groups(figure: &DrawnFigure) -> Vec<(&str, Vec<(f64, f64)>)> {
    let points =
        |group: &crate::DrawnGroup| group.points.iter().map(|point| (point.x, point.y)).collect();
    figure.groups.iter().map(|group| (group.label.as_str(), points(group))).collect()
}

#[test]
fn lines_are_over_the_numbers_of_an_axis() {
    let figure = drawn(
        "kind = \"lines\"\nx = \"interarrival\"\ny = \"game.rtx1.mean\"\n\
         x_axis = { range = [0, 200] }\ny_axis = { label = \"mean\", log = true }",
    );
    assert_eq!(
        groups(&figure),
        [
            ("lksctp", vec![(50.0, 1052.5), (100.0, 1102.5), (150.0, 1152.5)]),
            ("thin", vec![(50.0, 52.5), (100.0, 102.5), (150.0, 152.5)]),
        ]
    );
    let (from, to) = figure.groups[0].points[0].interval.unwrap();
    assert!((from - 1050.446).abs() < 1e-3 && (to - 1054.554).abs() < 1e-3, "{from} {to}");
    assert_eq!((figure.x.label.as_str(), figure.x.unit), ("interarrival", Unit::Milliseconds));
    assert_eq!((figure.x.range, figure.x.log), (Some((0.0, 200.0)), false));
    assert!(figure.x.categories.is_empty());
    assert_eq!((figure.y.label.as_str(), figure.y.log), ("mean", true));
}

#[test]
fn stated_values_are_placed_on_the_axes() {
    let lines = drawn(
        "kind = \"lines\"\nx = \"interarrival\"\ny = \"game.rtx1.mean\"\n\
         source = [{ x = \"100 ms\", y = 900, of = \"lksctp\" }, { x = 120, y = 7.5 }]",
    );
    let stated = |figure: &DrawnFigure| -> Vec<(Option<f64>, f64, Option<String>)> {
        figure.stated.iter().map(|value| (value.x, value.y, value.of.clone())).collect()
    };
    let expected = [(Some(100.0), 900.0, Some("lksctp".into())), (Some(120.0), 7.5, None)];
    assert_eq!(stated(&lines), expected);
    let bars = drawn(
        "kind = \"bars\"\nx = \"system\"\ny = [\"game.rtx1.mean\", \"game.rtx1.p99\"]\n\
         at.interarrival = \"50 ms\"\nsource = [{ x = \"thin\", y = 60, of = \"game.rtx1.mean\" }]",
    );
    assert_eq!(stated(&bars), [(Some(1.0), 60.0, Some("game.rtx1.mean".into()))]);
    let series = drawn(
        "kind = \"series\"\ny = \"game.rto\"\nat.interarrival = 50\n\
         source = [{ x = 3, y = 1000, of = \"thin\" }, { y = 200 }]",
    );
    assert_eq!(stated(&series), [(Some(3.0), 1000.0, Some("thin".into())), (None, 200.0, None)]);
}

#[test]
fn stated_values_that_have_no_place_are_mistakes() {
    let mistakes = |source: &str| {
        let text = format!(
            "{TWO_AXES}\n[[figure]]\ntitle = \"A\"\nkind = \"lines\"\nx = \"interarrival\"\n\
             y = \"game.rtx1.mean\"\nsource = [{source}]\n"
        );
        with(&text).unwrap_err().to_string()
    };
    assert!(mistakes("{ x = \"110 ms\", y = 1 }").contains("`x` is a label of the horizontal"));
    assert!(mistakes("{ x = 110, y = 1, of = \"thn\" }").contains("did you mean `thin`?"));
    assert!(mistakes("{ x = 110 }").contains("`y`"));
    let stacked = format!(
        "{TWO_AXES}\n[[figure]]\ntitle = \"A\"\nkind = \"stacked-bars\"\nx = \"interarrival\"\n\
         y = [\"game.rtx1.mean\", \"game.rtx1.p99\"]\nsource = [{{ y = 1 }}]\n"
    );
    assert!(with(&stacked).unwrap_err().to_string().contains("stacked bars have no `source`"));
}

#[test]
fn lines_may_take_an_axis_together_or_be_gains() {
    let text = "kind = \"lines\"\nx = \"interarrival\"\ny = \"game.rtx1.mean\"\n";
    let all = drawn(&format!("{text}averaged = \"system\""));
    let points = vec![(50.0, 552.5), (100.0, 602.5), (150.0, 652.5)];
    assert_eq!(groups(&all), [("game.rtx1.mean", points)]);
    assert_eq!(all.y.label, "what game.rtx1.mean is (mean over system)");
    assert_eq!(all.groups[0].point, [], "they have no place on the axis that is taken together");
    let text = format!("{text}at.system = \"lksctp\"\ngain_over.at.interarrival = 100");
    let gain = drawn(&text);
    assert_eq!((gain.y.unit, gain.x.unit), (Unit::Share, Unit::Milliseconds));
    let ends: Vec<f64> = gain.groups[0].points.iter().map(|point| point.y).collect();
    // 1050 and the seed against 1100 and the seed: the mean over the seeds 1 to 4.
    let less: f64 = (1..=4).map(|seed| -50.0 / (1100.0 + f64::from(seed))).sum();
    assert!((ends[0] - less / 4.0).abs() < 1e-12 && ends[1] == 0.0 && ends[2] == -ends[0]);
}

#[test]
fn an_axis_without_numbers_gives_categories() {
    let figure = drawn(
        "kind = \"lines\"\nx = \"system\"\ny = \"game.rtx1.{mean,p99}\"\nat.interarrival = 50",
    );
    assert_eq!(figure.x.categories, ["lksctp", "thin"]);
    assert_eq!(
        groups(&figure),
        [
            ("game.rtx1.mean", vec![(0.0, 1052.5), (1.0, 52.5)]),
            ("game.rtx1.p99", vec![(0.0, 10525.0), (1.0, 525.0)]),
        ]
    );
}

#[test]
fn bars_may_have_a_quantity_for_each_category() {
    let figure = drawn(
        "kind = \"bars\"\nx = [\"mean\", \"99 %\"]\ny = \"game.rtx1.{mean,p99}\"\n\
         at.interarrival = [50, 150]",
    );
    assert_eq!(figure.x.categories, ["mean", "99 %"]);
    let all = groups(&figure);
    let labels: Vec<_> = all.iter().map(|(label, _)| *label).collect();
    assert_eq!(labels, ["lksctp · 50 ms", "lksctp · 150 ms", "thin · 50 ms", "thin · 150 ms"]);
    assert_eq!(all[3].1, [(0.0, 152.5), (1.0, 1525.0)]);
}

#[test]
fn bars_over_a_numeric_axis_stand_side_by_side() {
    let figure = drawn(
        "kind = \"bars\"\nx = \"interarrival\"\ny = \"game.rtx1.mean\"\nat.system = \"thin\"",
    );
    assert_eq!(figure.x.categories, ["50 ms", "100 ms", "150 ms"]);
    assert_eq!(
        groups(&figure),
        [("game.rtx1.mean", vec![(0.0, 52.5), (1.0, 102.5), (2.0, 152.5)])]
    );
}

#[test]
fn stacked_bars_stack_quantities_and_have_a_bar_for_every_point() {
    let figure = drawn(
        "kind = \"stacked-bars\"\nx = [\"once\", \"again\"]\nat.interarrival = 50\n\
         y = [{ label = \"lost\", quantity = [\"game.loss_share\", \"game.spurious_share\"] },\n\
              { label = \"spurious\", quantity = [\"game.spurious_share\", \"game.loss_share\"] }]",
    );
    assert_eq!(figure.kind, FigureKind::StackedBars);
    assert_eq!(
        figure.x.categories,
        ["once · lksctp", "once · thin", "again · lksctp", "again · thin"]
    );
    let all = groups(&figure);
    assert_eq!(all[0], ("lost", vec![(0.0, 0.0025), (1.0, 0.0025), (2.0, 0.005), (3.0, 0.005)]));
    assert_eq!(all[1].0, "spurious");
    assert_eq!(figure.y.unit, Unit::Share);
}

#[test]
fn scatters_have_a_point_per_run() {
    let figure = drawn(
        "kind = \"scatter\"\nx = \"game.loss_share\"\ny = \"game.rtx1.mean\"\n\
         at = { system = \"thin\", interarrival = 50 }",
    );
    assert_eq!(
        groups(&figure),
        [("", vec![(0.001, 51.0), (0.002, 52.0), (0.003, 53.0), (0.004, 54.0)])]
    );
    assert_eq!((figure.x.unit, figure.y.unit), (Unit::Share, Unit::Milliseconds));
    assert_eq!(figure.x.label, "what game.loss_share is");
}

#[test]
fn distributions_are_pooled_over_the_seeds() {
    let figure = drawn("kind = \"ccdf\"\nx = \"game.latency\"\nat.interarrival = 50");
    let all = groups(&figure);
    assert_eq!((all[0].0, all[1].0), ("lksctp", "thin"));
    // The messages of the seeds 1 to 4 are 1…100, 2…101, 3…102 and 4…103.
    assert_eq!(all[1].1.len(), 103);
    assert_eq!(all[1].1[..2], [(1.0, 1.0), (2.0, 399.0 / 400.0)]);
    assert_eq!(all[1].1[102], (103.0, 1.0 / 400.0));
    let cdf = drawn("kind = \"cdf\"\nx = \"game.latency\"\nat.interarrival = 50");
    assert_eq!(groups(&cdf)[1].1[102], (103.0, 1.0));
    assert_eq!((cdf.x.unit, cdf.y.unit), (Unit::Milliseconds, Unit::Share));
}

#[test]
fn series_are_of_one_seed() {
    let at = "at = { interarrival = 50, system = \"thin\" }";
    let first = drawn(&format!("kind = \"series\"\ny = \"game.rto\"\n{at}"));
    assert_eq!(groups(&first), [("game.rto", vec![(0.0, 1000.0), (1.0, 1001.0)])]);
    let third = drawn(&format!("kind = \"series\"\ny = \"game.rto\"\nseed = 3\n{at}"));
    assert_eq!(groups(&third)[0].1[1], (1.0, 1003.0));
    assert_eq!((third.kind, third.x.unit), (FigureKind::Series, Unit::Seconds));
}

/// Each place as text: `AT: AXIS LABEL, …`.
fn places(figure: &DrawnFigure) -> Vec<String> {
    let places = figure.x.places.iter();
    places.map(|place| format!("{}: {}", place.at, words(&place.point))).collect()
}

fn words(point: &[Coordinate]) -> String {
    let words = point.iter().map(|at| format!("{} {}", at.axis, at.label));
    words.collect::<Vec<_>>().join(", ")
}

fn points(figure: &DrawnFigure) -> Vec<String> {
    figure.groups.iter().map(|group| words(&group.point)).collect()
}

#[test]
fn figures_say_where_in_the_sweep_their_parts_stand() {
    let lines = drawn(
        "kind = \"lines\"\nx = \"interarrival\"\ny = \"game.rtx1.mean\"\nat.interarrival = [150, 50]",
    );
    assert_eq!(places(&lines), ["150: interarrival 150 ms", "50: interarrival 50 ms"]);
    assert_eq!(points(&lines), ["system lksctp", "system thin"]);
    assert_eq!(groups(&lines)[1].1, [(50.0, 52.5), (150.0, 152.5)]);
    let stacked = drawn(
        "kind = \"stacked-bars\"\nx = \"system\"\ny = \"game.rtx1.{mean,p99}\"\nat.interarrival = 100",
    );
    assert_eq!(stacked.x.categories, ["lksctp", "thin"]);
    assert_eq!(
        places(&stacked),
        ["0: interarrival 100 ms, system lksctp", "1: interarrival 100 ms, system thin"]
    );
    assert_eq!(points(&stacked), ["interarrival 100 ms"; 2]);
    let bars = drawn("kind = \"bars\"\nx = [\"a\"]\ny = \"game.rtx1.mean\"\nat.interarrival = 50");
    assert!(places(&bars).is_empty());
    assert_eq!(
        points(&bars),
        ["system lksctp, interarrival 50 ms", "system thin, interarrival 50 ms"]
    );
}

#[test]
fn claimed_and_drawn_quantities_are_the_gains() {
    let text = format!(
        "costs = [\"game.spurious_share\"]\n{TWO_AXES}\n\
         [[figure]]\ntitle = \"x\"\nkind = \"lines\"\nx = \"interarrival\"\ny = \"game.{{rtx1.mean,spurious_share}}\"\n\
         [[claim]]\nsays = \"x\"\nquantity = \"game.rtx2.mean\"\nis = \"below\"\nthan = 1\n"
    );
    let page = page(
        &with(&text.replace("{rtx1.mean,spurious_share}", "rtx1.mean")).unwrap(),
        |_, _, _, _| None,
    );
    assert_eq!(page.gains, ["game.rtx2.mean", "game.rtx1.mean"]);
    assert_eq!(page.costs, ["game.spurious_share"]);
    assert_eq!((page.study.runs, page.study.simulated_s), (24, 24.0 * 3600.0));
    assert_eq!(page.study.seeds, [1, 2, 3, 4]);
    assert!(page.study.file.contains("[[claim]]"));
}

#[test]
fn an_additional_distribution_is_drawn_with_those_of_all_cells() {
    let figure = drawn(
        "kind = \"ccdf\"\nx = \"game.latency\"\nat.interarrival = 50\nat.system = \"lksctp\"\n\
         beside = [{ label = \"ideal\", quantity = \"game.latency\", at.system = \"thin\" }]",
    );
    let first = |n: usize| figure.groups[n].points[0].x;
    assert_eq!(figure.groups[1].label, "ideal");
    assert_eq!([first(0), first(1)], [101.0, 1.0]);
    let all = format!(
        "{TWO_AXES}\n[[figure]]\ntitle = \"A figure\"\nkind = \"ccdf\"\nx = \"game.latency\"\n\
         beside = [{{ label = \"ideal\", quantity = \"game.latency\" }}]"
    );
    let refused = with(&all).unwrap_err().to_string();
    assert!(refused.contains("6 cells: `at` chooses the one that is drawn"), "{refused}");
}

/// Seed `n` has the latencies `n` to `n + 99`, later by 100 for lksctp: the largest of all is that of the fourth.
#[test]
fn pooled_bars_are_of_the_values_of_all_seeds_together() {
    let bars = |seeds: &str| {
        let text = format!(
            "{TWO_AXES}\n[[figure]]\ntitle = \"A figure\"\nkind = \"bars\"\nx = \"system\"\n\
             y = \"game.latency.max\"\npooled = true\nat.interarrival = \"50 ms\"\n"
        );
        let study = super::kit::study(&format!(
            "title = \"A test\"\nseeds = {seeds}\n\n{text}\n{}",
            super::kit::SCENARIO
        ));
        page(&study.unwrap(), |_, _, _, seed| Some(seed)).figures.remove(0)
    };
    let figure = bars("4");
    assert_eq!(groups(&figure), [("game.latency.max", vec![(0.0, 203.0), (1.0, 103.0)])]);
    assert!(figure.groups[0].points.iter().all(|point| point.interval.is_none()), "four seeds");
    assert!(figure.y.label.ends_with("(all seeds together)"), "{}", figure.y.label);
    let point = bars("12").groups.remove(0).points[1];
    let (from, to) = point.interval.unwrap();
    assert_eq!((point.y, to), (111.0, 111.0));
    assert!((103.0..111.0).contains(&from), "{from}");
}

#[test]
fn only_statistics_of_distributions_are_pooled() {
    let mistakes = |text: &str| {
        let text = format!("{TWO_AXES}\n[[figure]]\ntitle = \"A figure\"\npooled = true\n{text}\n");
        with(&text).unwrap_err().to_string()
    };
    let lines = "kind = \"lines\"\nx = \"interarrival\"\n";
    let share = mistakes(&format!("{lines}y = \"game.loss_share\""));
    assert!(share.contains("`pooled` needs a mean, percentile or maximum"), "{share}");
    let gain = "y = \"game.latency.max\"\nat.system = \"thin\"\ngain_over.at.system = \"lksctp\"";
    let gain = mistakes(&format!("{lines}{gain}"));
    assert!(gain.contains("`pooled` excludes combined points and gains"), "{gain}");
    let cdf = mistakes("kind = \"cdf\"\nx = \"game.latency\"");
    assert!(cdf.contains("a figure of a distribution has no `pooled`"), "{cdf}");
}
