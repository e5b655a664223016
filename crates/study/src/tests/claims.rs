//! The verdicts of claims whose answer is known.

use VerdictKind::{DoesNotHold, Holds, Undecided};

use super::kit::{TWO_AXES, page, study, with};
use crate::page::StudyPage;
use crate::{Estimate, Verdict, VerdictKind, verdict_table};

/// A study with the claim `text`, whose values are:
/// - `rtx1.mean`: 1000 for lksctp and 500 for thin, minus the interarrival time, plus the seed;
/// - `rtx2.mean`: the interarrival time, and the seed if the system is lksctp;
/// - `rtx1.p99`: ± 100 by the seed, around 0 for lksctp and around 50 for thin;
/// - `loss_share`: only of the first seed, 5 %;
/// - nothing else.
fn judged(text: &str) -> Verdict {
    found(text).claims.remove(0)
}

fn found(text: &str) -> StudyPage {
    let text = format!("{TWO_AXES}\n[[claim]]\nsays = \"It is so\"\n{text}\n");
    let study = with(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    page(&study, |name, system, interarrival, seed| {
        let is_thin = system == "thin";
        match name {
            "game.rtx1.mean" => Some(if is_thin { 500.0 } else { 1000.0 } - interarrival + seed),
            "game.rtx2.mean" => Some(interarrival + if is_thin { 0.0 } else { seed }),
            "game.rtx1.p99" => {
                let sway = if seed % 2.0 == 0.0 { 100.0 } else { -100.0 };
                Some(if is_thin { 50.0 - sway } else { sway })
            }
            "game.loss_share" => (seed == 1.0).then_some(0.05),
            _ => None,
        }
    })
}

/// The verdict of the claim, and of each of its instances.
fn verdicts(text: &str) -> (VerdictKind, Vec<VerdictKind>) {
    let verdict = judged(text);
    (verdict.verdict, verdict.instances.iter().map(|instance| instance.verdict).collect())
}

const MEANS: &str =
    "quantity = \"game.rtx1.mean\"\nat.system = \"thin\"\nthan.at.system = \"lksctp\"\n";

#[test]
fn a_claim_holds_at_every_point_that_it_does_not_bind() {
    let verdict = judged(&format!("{MEANS}is = \"below\"\npaper = \"1 against 2\""));
    assert_eq!(verdict.verdict, Holds);
    assert_eq!(
        verdict.means,
        "game.rtx1.mean at system \"thin\" is below the same at system \"lksctp\""
    );
    assert_eq!(verdict.source_value.as_deref(), Some("1 against 2"));
    let points: Vec<_> = verdict.instances.iter().map(|one| one.point[0].label.as_str()).collect();
    assert_eq!(points, ["50 ms", "100 ms", "150 ms"]);
    // 500 − 50 + 2.5 against 1000 − 50 + 2.5; the seeds 1 to 4 have the deviation 1.291, and t is
    // 3.182 with three degrees of freedom.
    let first = &verdict.instances[0];
    assert_eq!(first.left.map(|left| (left.mean, left.seeds)), Some((452.5, 4)));
    assert_eq!(
        first.finding,
        "452.5 ± 2.054 ms against 952.5 ± 2.054 ms, difference -500 ± 0 ms, paired over 4 seeds"
    );
}

#[test]
fn the_other_side_does_not_hold() {
    assert_eq!(verdicts(&format!("{MEANS}is = \"above\"")), (DoesNotHold, vec![DoesNotHold; 3]));
}

#[test]
fn factors_and_margins_count() {
    // 452.5 / 952.5 = 0.475, 402.5 / 902.5 = 0.446, 352.5 / 852.5 = 0.4135.
    let times = |times: &str| verdicts(&format!("{MEANS}is = \"below\"\nthan.times = {times}")).1;
    assert_eq!(times("0.48"), [Holds; 3]);
    assert_eq!(times("0.46"), [DoesNotHold, Holds, Holds]);
    assert_eq!(times("0.4"), [DoesNotHold; 3]);
    let by = |by: &str| verdicts(&format!("{MEANS}is = \"below\"\nby = {by}")).0;
    assert_eq!([by("499"), by("501")], [Holds, DoesNotHold]);
}

#[test]
fn numbers_are_right_sides_and_points_may_be_several() {
    let text = "quantity = \"game.rtx1.mean\"\nat = { system = \"thin\", interarrival = [50, \"150 ms\"] }\n\
                is = \"at most\"\nthan = 400";
    let verdict = judged(text);
    assert_eq!(
        verdict.means,
        "game.rtx1.mean at system \"thin\", interarrival \"50 ms\" or \"150 ms\" is at most 400 ms"
    );
    let (kind, each) = verdicts(text);
    assert_eq!((kind, each), (DoesNotHold, vec![DoesNotHold, Holds]));
}

#[test]
fn quantities_and_right_points_may_be_several() {
    let text = "quantity = \"game.rtx{1,2}.mean\"\nat = { system = \"lksctp\", interarrival = 100 }\n\
                is = \"above\"\nthan = { at = { system = [\"thin\"], interarrival = [100, 150] } }";
    let verdict = judged(text);
    let points: Vec<String> = verdict
        .instances
        .iter()
        .map(|one| {
            one.point
                .iter()
                .map(|at| format!("{}={}", at.axis, at.label))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        points,
        [
            "quantity=game.rtx1.mean than interarrival=100 ms",
            "quantity=game.rtx1.mean than interarrival=150 ms",
            "quantity=game.rtx2.mean than interarrival=100 ms",
            "quantity=game.rtx2.mean than interarrival=150 ms",
        ]
    );
    // 902.5 against 402.5 and 352.5; 102.5 against 100 and 150.
    assert_eq!(verdicts(text).1, [Holds, Holds, Holds, DoesNotHold]);
}

#[test]
fn a_difference_below_its_variation_is_undecided() {
    let text = "quantity = \"game.rtx1.p99\"\nat.system = \"thin\"\nis = \"above\"\n\
                than.at.system = \"lksctp\"";
    assert_eq!(verdicts(text), (Undecided, vec![Undecided; 3]));
}

#[test]
fn too_few_measurements_are_undecided_with_a_reason() {
    let verdict = judged("quantity = \"game.loss_share\"\nis = \"below\"\nthan = 0.5");
    assert_eq!((verdict.verdict, verdict.instances.len()), (Undecided, 6));
    assert_eq!(verdict.instances[0].finding, "5 % against 50 %; one seed has no interval");
    let verdict = judged("quantity = \"game.latency.max\"\nis = \"below\"\nthan = 5");
    assert_eq!(verdict.verdict, Undecided);
    assert_eq!(verdict.instances[0].finding, "nothing measured against 5 ms; no seed has both");
}

#[test]
fn trends_are_of_the_steps_and_of_the_ends() {
    let trend = |is: &str, more: &str| {
        let text = format!(
            "quantity = \"game.rtx2.mean\"\nat.system = \"thin\"\nis = \"{is}\"\n\
             along = \"interarrival\"\n{more}"
        );
        verdicts(&text)
    };
    assert_eq!(trend("rising", ""), (Holds, vec![Holds; 3]));
    assert_eq!(trend("not falling", ""), (Holds, vec![Holds; 2]));
    assert_eq!(trend("falling", ""), (DoesNotHold, vec![DoesNotHold; 3]));
    assert_eq!(trend("not rising", ""), (DoesNotHold, vec![DoesNotHold; 2]));
    let over = "over = [150, 50]";
    assert_eq!(trend("falling", over), (Holds, vec![Holds]));
    assert_eq!(trend("rising", over), (DoesNotHold, vec![DoesNotHold]));
    // 50, 100, 150: twice and three times the first.
    let level = |tolerance: &str| {
        trend("level", &format!("tolerance = {tolerance}\nover = [150, 100, 50]")).1
    };
    assert_eq!(level("0.7"), [Holds, Holds]);
    assert_eq!(level("0.5"), [Holds, DoesNotHold]);
    // A step down by a third and one by half.
    let slack = |tolerance: &str| {
        trend("not falling", &format!("tolerance = {tolerance}\nover = [150, 100, 50]")).1
    };
    assert_eq!(slack("0.4"), [Holds, DoesNotHold]);
    let verdict = judged(
        "quantity = \"game.rtx2.mean\"\nat.system = \"thin\"\nis = \"rising\"\nalong = \"interarrival\"\n\
         tolerance = 0.02",
    );
    assert_eq!(verdict.instances[0].point[0].label, "50 ms → 100 ms");
    assert_eq!(
        verdict.means,
        "game.rtx2.mean at system \"thin\" is rising (tolerance 2 %) along interarrival: 50 ms, 100 ms, 150 ms"
    );
}

#[test]
fn points_are_taken_together_seed_by_seed() {
    let judged = |quantity: &str, more: &str| {
        judged(&format!("quantity = \"game.{quantity}\"\nis = \"above\"\nthan = 20\n{more}"))
    };
    let left = |verdict: &Verdict| -> Vec<_> {
        verdict.instances.iter().map(|one| one.left.map(|left| (left.mean, left.range))).collect()
    };
    // 450, 400 and 350, and the seed, which is 1 to 4.
    let averaged = judged("rtx1.mean", "at.system = \"thin\"\naveraged = [\"interarrival\"]");
    assert_eq!(
        averaged.means,
        "game.rtx1.mean at system \"thin\" (mean over interarrival) is above 20 ms"
    );
    assert_eq!((averaged.verdict, left(&averaged)), (Holds, vec![Some((402.5, (401.0, 404.0)))]));
    assert_eq!(averaged.instances[0].point, []);
    let largest = judged("rtx1.mean", "at.system = \"thin\"\nlargest = \"interarrival\"");
    assert_eq!(left(&largest), [Some((452.5, (451.0, 454.0)))]);
    // Of lksctp −100 and 100, and of thin 150 and −50 at the same seeds.
    let averaged = judged("rtx1.p99", "averaged = \"system\"");
    assert_eq!(left(&averaged), [Some((25.0, (25.0, 25.0))); 3]);
    let largest = judged("rtx1.p99", "largest = \"system\"");
    assert_eq!(left(&largest), [Some((125.0, (100.0, 150.0))); 3]);
    let all = judged("rtx1.p99", "averaged = [\"interarrival\", \"system\"]");
    assert!(all.means.contains(" (mean over system, interarrival) is"), "{}", all.means);
    assert_eq!(left(&all), [Some((25.0, (25.0, 25.0)))]);
}

#[test]
fn both_sides_and_all_steps_take_the_same_points_together() {
    let verdict = judged(&format!("{MEANS}is = \"below\"\naveraged = \"interarrival\""));
    assert_eq!(
        verdict.instances[0].finding,
        "402.5 ± 2.054 ms against 902.5 ± 2.054 ms, difference -500 ± 0 ms, paired over 4 seeds"
    );
    let verdict = judged(
        "quantity = \"game.rtx1.p99\"\nis = \"level\"\ntolerance = 0.01\n\
         along = \"interarrival\"\naveraged = \"system\"",
    );
    assert_eq!((verdict.verdict, verdict.instances.len()), (Holds, 2));
    assert_eq!(
        verdict.instances[0].finding,
        "25 ± 0 ms against 25 ± 0 ms, difference 0 ± 0 ms, paired over 4 seeds (tolerance 1 %)"
    );
}

#[test]
fn a_gain_of_a_value_over_itself_is_refused() {
    let of = |at: &str, than: &str| {
        let text = format!(
            "{TWO_AXES}\n[[claim]]\nsays = \"It gains\"\nquantity = \"game.rtx1.mean\"\n{at}\n\
             gain_over.at.system = \"lksctp\"\nis = \"above\"\n{than}\n"
        );
        with(&text).err().map_or_else(String::new, |mistakes| mistakes.to_string())
    };
    assert_eq!(of("at.system = \"thin\"", "than = 0.1"), "");
    let itself = "the gain of `game.rtx1.mean` at system \"lksctp\", interarrival \"50 ms\" is one over itself";
    assert!(of("at.system = \"lksctp\"", "than = 0.1").contains(itself));
    // The claim is made at both systems, of which one is the reference.
    assert!(of("", "than = 0.1").contains(itself));
    let right = "than = { at.system = \"lksctp\", times = 2 }";
    assert!(of("at.system = \"thin\"", right).contains(itself));
}

#[test]
fn values_are_shown_as_gains_over_another_point() {
    let shares = |text: &str| -> Vec<Vec<f64>> {
        let verdict =
            judged(&format!("quantity = \"game.rtx1.mean\"\nat.system = \"thin\"\n{text}"));
        let ends = |left: Estimate| vec![left.range.0, left.range.1];
        verdict.instances.iter().filter_map(|one| one.left.map(ends)).collect()
    };
    // 450 and the seed, which is 1 to 4, against 950 and the seed; then 400 against 900, 350 against 850.
    let than = "is = \"above\"\nthan = 0.55";
    let less = shares(&format!("loss_against.at.system = \"lksctp\"\n{than}"));
    let of = |base: f64| vec![500.0 / (base + 4.0), 500.0 / (base + 1.0)];
    assert_eq!(less, [of(950.0), of(900.0), of(850.0)]);
    let more = shares(&format!("gain_over.at.system = \"lksctp\"\n{than}"));
    let negative = |ends: Vec<f64>| vec![-ends[1], -ends[0]];
    assert_eq!(more, less.into_iter().map(negative).collect::<Vec<_>>());
    // The relative decrease of the means, not the mean of the relative decreases.
    let all = format!("averaged = \"interarrival\"\nloss_against.at.system = \"lksctp\"\n{than}");
    assert_eq!(shares(&all), [of(900.0)]);
}

#[test]
fn a_gain_is_a_share_whatever_it_is_of_and_both_sides_have_it() {
    let verdict = judged(
        "quantity = \"game.rtx1.mean\"\nat = { system = \"thin\", interarrival = 50 }\n\
         loss_against.at.system = \"lksctp\"\nis = \"below\"\nthan.at.interarrival = 150",
    );
    assert_eq!(
        verdict.means,
        "game.rtx1.mean at system \"thin\", interarrival \"50 ms\" (loss against system \"lksctp\") is \
         below the same at interarrival \"150 ms\" (loss against system \"lksctp\")"
    );
    assert_eq!(verdict.verdict, Holds);
    let finding = &verdict.instances[0].finding;
    assert!(finding.starts_with("52.49 ± 0.1132 % against 58.65 ± "), "{finding}");
}

const TWO_FLOWS: &str = "[scenario]\nduration = \"1h\"\n[scenario.network]\nforward = \"delay 50ms\"\n\
    [scenario.thin.one]\ntraffic = \"every 1s size 100\"\nprofile = \"thin\"\n\
    [scenario.thin.two]\ntraffic = \"every 1s size 100\"\nprofile = \"lksctp\"\n";

fn of_two_flows(claim: &str) -> Result<crate::Study, crate::Mistakes> {
    study(&format!("title = \"A test\"\nseeds = 4\n{TWO_FLOWS}[[claim]]\nsays = \"A\"\n{claim}"))
}

/// The same quantity of two flows of one run: 300 and the seed of one, 400 and the seed of two.
#[test]
fn flows_of_one_run_are_compared() {
    let judged = |claim: &str| {
        let study = of_two_flows(claim).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let value =
            |name: &str, seed| if name.starts_with("one") { 300.0 + seed } else { 400.0 + seed };
        page(&study, |name, _, _, seed| Some(value(name, seed))).claims.remove(0)
    };
    let verdict = judged("quantity = \"one.rtx{1,2}.mean\"\nis = \"below\"\nthan.flow = \"two\"");
    assert_eq!(verdict.verdict, Holds);
    assert_eq!(verdict.means, "one.rtx1.mean, one.rtx2.mean is below two.rtx1.mean, two.rtx2.mean");
    let sides = |verdict: &crate::Verdict| {
        let one = &verdict.instances[0];
        [one.left, one.right].map(|side| side.map(|side| side.mean))
    };
    assert_eq!(sides(&verdict), [Some(302.5), Some(402.5)]);
    let gain = judged(
        "quantity = \"one.rtx1.mean\"\nloss_against.flow = \"two\"\nis = \"above\"\nthan = 0.2",
    );
    let share = (1..=4).map(|seed| 100.0 / (400.0 + f64::from(seed))).sum::<f64>() / 4.0;
    assert!((sides(&gain)[0].unwrap() - share).abs() < 1e-12, "{gain:?}");
    assert_eq!(gain.means, "one.rtx1.mean (loss against flow \"two\") is above 20 %");
}

#[test]
fn another_flow_must_exist_and_measure_the_same() {
    let mistakes = |claim: &str| of_two_flows(claim).unwrap_err().to_string();
    let of =
        |more: &str| mistakes(&format!("quantity = \"one.rtx1.mean\"\nis = \"below\"\n{more}"));
    assert!(of("than.flow = \"three\"").contains("no quantity `three.rtx1.mean` is measured"));
    assert!(of("than = 1\ngain_over.flow = \"three\"").contains("`three.rtx1.mean`"));
    let both = "than = { flow = \"two\", quantity = \"two.rtx1.mean\" }";
    assert!(of(both).contains("`quantity` and `flow` exclude each other"));
    assert!(of("than.flow = \"one\"").contains("compared with itself"));
    assert!(of("than = 1\ngain_over = {}").contains("or another `flow`"));
}

/// The value falls from 500 to 450 between 50 and 100 ms, and to 400 between 100 and 150 ms.
#[test]
fn steps_may_be_compared_with_steps() {
    let verdict = judged(
        "quantity = \"game.rtx1.mean\"\nat = { system = \"thin\", interarrival = 150 }\n\
         loss_against.at.interarrival = 100\nis = \"above\"\n\
         than = { at.interarrival = 100, loss_against.at.interarrival = 50 }",
    );
    let one = &verdict.instances[0];
    let mean = |of: &dyn Fn(f64) -> f64| (1..=4).map(|seed| of(f64::from(seed))).sum::<f64>() / 4.0;
    let expected = [mean(&|seed| 50.0 / (400.0 + seed)), mean(&|seed| 50.0 / (450.0 + seed))];
    for (side, expected) in [one.left, one.right].into_iter().zip(expected) {
        assert!((side.unwrap().mean - expected).abs() < 1e-12);
    }
    assert_eq!(verdict.verdict, Holds);
    let right = "the same at interarrival \"100 ms\" (loss against interarrival \"50 ms\")";
    assert!(verdict.means.ends_with(right), "{}", verdict.means);
}

/// A share of an empty set is a missing value.
#[test]
fn without_a_base_there_is_no_gain() {
    let verdict = judged(
        "quantity = \"game.loss_share\"\nat.system = \"thin\"\n\
         gain_over.at.system = \"lksctp\"\nis = \"at most\"\nthan = 0",
    );
    assert_eq!(verdict.instances[0].left.map(|left| (left.seeds, left.mean)), Some((1, 0.0)));
    assert_eq!(verdict.verdict, Undecided);
}

#[test]
fn where_one_point_has_no_value_all_together_have_none() {
    for together in ["averaged", "largest"] {
        let claim = format!(
            "{TWO_AXES}\n[[claim]]\nsays = \"x\"\nquantity = \"game.rtx1.mean\"\n\
             is = \"above\"\nthan = 1\n{together} = \"interarrival\"\n"
        );
        let study = with(&claim).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let lacking = |at: f64| {
            let page = page(&study, |_, _, interarrival, seed| {
                (interarrival != at || seed > 1.0).then_some(5.0)
            });
            page.claims[0].instances[0].left.map(|left| left.seeds)
        };
        assert_eq!([50.0, 150.0, 7.0].map(lacking), [Some(3), Some(3), Some(4)], "{together}");
    }
}

#[test]
fn distributions_agree_or_do_not() {
    // Six seeds at least can show a difference at all.
    let like = |seeds: u32, than: &str| {
        let claim = format!(
            "[[claim]]\nsays = \"x\"\nquantity = \"game.latency\"\nis = \"like\"\ndistance = 0.1\n\
             at = {{ system = \"thin\", interarrival = 50 }}\nthan.at = {{ {than} }}\n"
        );
        let seeds =
            format!("title = \"x\"\nseeds = {seeds}\n{TWO_AXES}{claim}{}", super::kit::SCENARIO);
        let study = super::kit::study(&seeds).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let verdict = page(&study, |_, _, _, _| None).claims.remove(0);
        (verdict.verdict, verdict.instances[0].finding.clone())
    };
    let (kind, finding) = like(6, "interarrival = 100");
    assert_eq!(kind, Holds, "{finding}");
    assert_eq!(
        finding,
        "distance 0.0000 (at most 0.1), p = 1.000 by exchanging the runs of 6 seeds"
    );
    assert_eq!(like(6, "system = \"lksctp\"").0, DoesNotHold);
    let (kind, finding) = like(4, "interarrival = 100");
    assert_eq!(kind, Undecided);
    assert!(finding.ends_with("so few could show no difference"), "{finding}");
}

#[test]
fn the_table_has_every_claim_with_its_numbers() {
    let page = found(&format!("{MEANS}is = \"below\"\npaper = \"1725 against 3521 ms\""));
    let table = verdict_table([&page, &page], None);
    let once = "test: A test\n\
        \x20 holds  3 of 3  It is so\n\
        \x20                452.5 ± 2.054 ms against 952.5 ± 2.054 ms, difference -500 ± 0 ms, paired over 4\n\
        \x20                seeds at interarrival \"50 ms\"\n\
        \x20                source: 1725 against 3521 ms\n\n";
    assert_eq!(table, format!("{once}{once}2 claims: 2 hold, 0 do not, 0 undecided\n"));
}

#[test]
fn a_report_without_runs_decides_nothing() {
    let study =
        with(&format!("{TWO_AXES}\n[[claim]]\nsays = \"x\"\n{MEANS}is = \"below\"")).unwrap();
    let page = study.page(|_| None);
    assert_eq!((page.study.runs, page.claims[0].verdict), (0, Undecided));
    assert!(page.cells.iter().all(|cell| cell.quantities.is_empty()));
    assert_eq!(page.cells.len(), 6);
}

/// The messages of a seed take 0 to 99 ms plus the seed, and those of lksctp 100 ms more. Without `pooled` the
/// quantities are missing, because no run reports them.
#[test]
fn pooled_claims_are_of_the_values_of_all_seeds() {
    let judged = |seeds: u32, text: &str| {
        let claim = format!("[[claim]]\nsays = \"x\"\nat.system = \"thin\"\n{text}\n");
        let text =
            format!("title = \"x\"\nseeds = {seeds}\n{TWO_AXES}{claim}{}", super::kit::SCENARIO);
        let study = super::kit::study(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        page(&study, |_, _, _, _| None).claims.remove(0)
    };
    let max =
        |seeds, text: &str| judged(seeds, &format!("quantity = \"game.latency.max\"\n{text}"));
    let below = max(10, "pooled = true\nis = \"below\"\nthan.at.system = \"lksctp\"");
    assert_eq!(below.verdict, Holds);
    let first = &below.instances[0];
    assert_eq!(first.left.map(|left| (left.mean, left.seeds)), Some((109.0, 10)));
    assert_eq!(first.right.map(|right| right.mean), Some(209.0));
    assert!(first.finding.ends_with("of the values of 10 seeds together"), "{}", first.finding);
    assert!(below.means.ends_with(", of the values of all seeds together"), "{}", below.means);
    assert_eq!(max(10, "pooled = true\nis = \"above\"\nthan = 200").verdict, DoesNotHold);
    // The means of ten seeds are 50.5 to 59.5: for some choices of seeds it is below 55.
    let mean = |seeds, than: u32| {
        let text = format!(
            "quantity = \"game.latency.mean\"\npooled = true\nis = \"above\"\nthan = {than}"
        );
        judged(seeds, &text).verdict
    };
    assert_eq!([mean(10, 55), mean(10, 50), mean(9, 50)], [Undecided, Holds, Undecided]);
    let apart = max(10, "is = \"below\"\nthan.at.system = \"lksctp\"");
    assert_eq!(apart.verdict, Undecided);
}

#[test]
fn pooled_claims_need_a_distribution() {
    let mistakes = |text: &str| {
        let text = format!("{TWO_AXES}\n[[claim]]\nsays = \"x\"\npooled = true\n{text}\n");
        with(&text).unwrap_err().to_string()
    };
    let of_none = mistakes("quantity = \"game.rtx1.mean\"\nis = \"below\"\nthan = 1");
    assert!(of_none.contains("`pooled` needs a mean, percentile or maximum"), "{of_none}");
    let together = mistakes(
        "quantity = \"game.latency.mean\"\naveraged = \"system\"\nis = \"below\"\nthan = 1",
    );
    assert!(together.contains("`pooled` excludes combined points"), "{together}");
}
