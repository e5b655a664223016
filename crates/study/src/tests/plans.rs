//! The planned runs.

use serde_json::Value;

use super::kit::{TWO_AXES, with};
use crate::{RunDocument, Study};

fn two_axes() -> Study {
    with(TWO_AXES).unwrap()
}

/// The scenario of a run as JSON text.
fn json(run: &RunDocument) -> Value {
    serde_json::to_value(&run.scenario).unwrap()
}

fn labels(run: &RunDocument) -> Vec<&str> {
    run.point.iter().map(|coordinate| coordinate.label.as_str()).collect()
}

#[test]
fn every_cell_has_every_seed_and_the_last_axis_is_fastest() {
    let study = two_axes();
    let plan = study.plan();
    assert_eq!((plan.len(), study.runs()), (2 * 3 * 4, 24));
    let seeds: Vec<u64> = plan.iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [1, 2, 3, 4].repeat(6));
    let order: Vec<_> = plan.iter().step_by(4).map(labels).collect();
    assert_eq!(
        order,
        [
            ["lksctp", "50 ms"],
            ["lksctp", "100 ms"],
            ["lksctp", "150 ms"],
            ["thin", "50 ms"],
            ["thin", "100 ms"],
            ["thin", "150 ms"]
        ]
    );
    for run in &plan {
        let scenario = json(run);
        assert_eq!(scenario["thin"]["game"]["profile"], run.point[0].label);
        let interarrival = run.point[1].label.replace(' ', "");
        let traffic = format!("every {interarrival} size 100");
        assert_eq!(scenario["thin"]["game"]["traffic"], traffic);
        assert_eq!(scenario["duration"], "1h");
    }
}

#[test]
fn equal_files_have_equal_plans_and_runs_differ_in_their_keys() {
    let (plan, again) = (two_axes().plan(), two_axes().plan());
    assert_eq!(plan, again);
    let mut keys: Vec<_> = plan.iter().map(RunDocument::key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), plan.len());
}

#[test]
fn a_study_without_axes_is_one_cell() {
    let study = with("about = \"\"\"\nOne.\n\"\"\"").unwrap();
    assert_eq!(study.runs(), 4);
    assert!(study.plan()[0].point.is_empty());
    assert_eq!((study.title.as_str(), study.about.as_str()), ("A test", "One."));
    let setting: Vec<_> = study.setting.iter().map(|line| line.axis.as_str()).collect();
    let expected = ["duration", "network.forward", "thin.game.traffic", "thin.game.profile"];
    assert_eq!(setting, expected);
}

/// Two axes that are parts of one string.
#[test]
fn an_axis_may_use_the_value_of_another_by_its_name() {
    let axes = "[[axis]]\nname = \"loss rate\"\nvalues = [1, 5]\nset.network.forward = \"loss {}%\"\n\
                [[axis]]\nname = \"delay\"\nvalues = [\"50ms\", \"1s\"]\n\
                set.network.forward = \"delay {} loss {loss rate}%\"";
    let study = with(axes).unwrap();
    let paths: Vec<_> = study.plan().iter().map(json).step_by(4).collect();
    let paths: Vec<_> = paths.iter().map(|path| &path["network"]["forward"]).collect();
    let expected =
        ["delay 50ms loss 1%", "delay 1s loss 1%", "delay 50ms loss 5%", "delay 1s loss 5%"];
    assert_eq!(paths, expected);
    let unknown = with(&axes.replace("{loss rate}", "{loss}")).unwrap_err().to_string();
    assert!(unknown.contains("{loss}%"), "{unknown}");
    let lost = with(&axes.replace(" loss {loss rate}%", " loss 2%")).unwrap_err().to_string();
    assert!(
        lost.contains("axis `delay` sets `network.forward`, as axis `loss rate` does"),
        "{lost}"
    );
}

#[test]
fn tables_are_merged_and_values_replaced() {
    let point = "[[axis]]\nname = \"a\"\n[[axis.point]]\nlabel = \"x\"\n\
                 set.network.backward = \"delay 1ms\"\nset.thin.chat = { traffic = \"every 1s size 9\", profile = \"thin\" }";
    let scenario = json(&with(point).unwrap().plan()[0]);
    assert_eq!(scenario["network"]["forward"], "delay 50ms loss 5%");
    assert_eq!(scenario["network"]["backward"], "delay 1ms");
    assert_eq!(scenario["thin"]["chat"]["profile"], "thin");
    assert_eq!(scenario["thin"]["game"]["profile"], "lksctp");
}

#[test]
fn a_gap_alone_becomes_the_value_itself() {
    let axis = "[[axis]]\nname = \"a\"\nvalues = [\"2h\", \"3h\"]\nnumbers = [2, 3]\n\
                labels = [\"two\", \"three\"]\nset.duration = \"{}\"";
    let study = with(axis).unwrap();
    let durations: Vec<_> = study.plan().iter().map(|run| json(run)["duration"].clone()).collect();
    assert_eq!(durations, ["2h", "2h", "2h", "2h", "3h", "3h", "3h", "3h"]);
    assert!(study.axes[0].is_numeric());
    assert_eq!(
        (study.axes[0].points[1].number, &*study.axes[0].points[1].label),
        (Some(3.0), "three")
    );
}

#[test]
fn seeds_may_be_listed() {
    let text = format!("title = \"x\"\nseeds = [7, 3]\n{}", super::kit::SCENARIO);
    let seeds: Vec<_> =
        super::kit::study(&text).unwrap().plan().iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [7, 3]);
}
