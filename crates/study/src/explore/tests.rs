use std::time::Duration;

use super::*;

fn with(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

#[test]
fn a_file_holds_the_settings_that_made_it() {
    let cases = [
        Settings::default(),
        with(|it| it.rhythm = Rhythm::Poisson),
        with(|it| (it.rhythm, it.ordered) = (Rhythm::Trace("ssh".into()), true)),
        with(|it| (it.rtt_ms, it.jitter_ms, it.loss_percent) = (33.333, 4.5, 0.0)),
        with(|it| (it.loss_percent, it.burst_ms, it.seeds) = (0.001, 33.0, 1)),
        with(|it| (it.rate_kbit, it.queue, it.interval_ms) = (64, 7, 12.5)),
        with(|it| {
            it.ordered = true;
            it.duration_s = 60;
            it.systems = systems().map(|system| system.label.to_owned()).collect();
        }),
    ];
    for settings in cases {
        let text = settings.text().unwrap();
        assert_eq!(Settings::read(&text).unwrap(), settings, "{text}");
        assert_eq!(
            settings.study().unwrap().runs(),
            settings.systems.len() * settings.seeds as usize
        );
        let comments = format!("# mine\n{}", text.replace("seeds =", "# more\nseeds     ="));
        assert_eq!(Settings::read(&comments).unwrap(), settings);
    }
}

#[test]
fn the_figure_goes_down_to_a_single_message() {
    // 6000 messages in each of three runs.
    let text = Settings::default().text().unwrap();
    assert!(text.contains("range = [0.00001, 1.15]"), "{text}");
    // Six messages in one run.
    let few = with(|it| (it.interval_ms, it.duration_s, it.seeds) = (1000.0, 5, 1));
    assert!(few.text().unwrap().contains("range = [0.1, 1.15]"));
}

#[test]
fn settings_without_effect_are_not_in_the_file() {
    let settings = with(|it| (it.loss_percent, it.burst_ms, it.queue) = (0.0, 70.0, 5));
    let read = Settings::read(&settings.text().unwrap()).unwrap();
    assert_eq!(read, with(|it| it.loss_percent = 0.0));
    assert_eq!(read.text().unwrap(), settings.text().unwrap());
}

#[test]
fn a_file_with_anything_else_is_refused() {
    let text = Settings::default().text().unwrap();
    for (from, to, expected) in [
        ("seeds = 3", "seeds = [1, 2, 3]", "seeds is missing"),
        ("\"300s\"", "\"5min\"", "scenario.duration"),
        ("loss 5%", "loss 5% duplicate 1%", "network.forward"),
        ("network.forward", "network.backward = \"delay 1ms\"\nnetwork.forward", "more than"),
        ("size 100", "size 100b", "traffic"),
        ("profile = \"thin\"", "profile = \"lksctp\"", "more than"),
        ("label = \"thin\"", "label = \"slim\"", "no system `slim`"),
        ("unordered = true", "unordered = true\nnagle = true", "more than"),
        ("[scenario]", "[scenario", "not TOML"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let refused = Settings::read(&changed).unwrap_err().to_string();
        assert!(refused.contains(expected), "{from} → {to}: {refused}");
    }
    let large = format!("{text}\n#{}", "x".repeat(crate::MAX_BYTES));
    assert!(matches!(Settings::read(&large), Err(NotReadable::Size(_))));
}

/// Settings with the number `control` set to `value`, and so few messages that their number is no problem.
fn with_number(control: &Control, value: f64) -> Settings {
    let light = with(|it| (it.interval_ms, it.duration_s, it.rate_kbit) = (1000.0, 5, 100_000));
    let mut json = serde_json::to_value(light).unwrap();
    json[control.name] = match control.step >= 1.0 && value.fract() == 0.0 && value >= 0.0 {
        true => (value as u64).into(),
        false => value.into(),
    };
    serde_json::from_value(json).unwrap()
}

#[test]
fn every_number_has_its_limits() {
    for control in &CONTROLS {
        for value in [control.least, control.most] {
            let settings = with_number(control, value);
            assert_eq!((control.value)(&settings), value, "{}", control.name);
            settings.study().unwrap_or_else(|error| panic!("{} {value}: {error}", control.name));
        }
        let mut beyond = vec![control.most + control.step];
        if control.least - control.step >= 0.0 {
            beyond.push(control.least - control.step);
        }
        if control.step < 1.0 {
            beyond.extend([control.least - control.step, control.least + control.step / 3.0]);
        }
        for value in beyond {
            let refused = with_number(control, value).text().unwrap_err();
            assert!(
                matches!(refused, SettingsError::Number { label, .. } if label == control.label),
                "{} {value}: {refused}",
                control.name
            );
        }
    }
}

#[test]
fn a_question_has_limits() {
    let refused = |settings: Settings| settings.study().unwrap_err();
    for seeds in [0, MAX_SEEDS + 1] {
        assert!(matches!(refused(with(|it| it.seeds = seeds)), SettingsError::Seeds(_)));
    }
    // 5 systems with 3 runs: 2,000,000 messages are 133,333 in a run.
    let every_ms = |duration_s| with(|it| (it.interval_ms, it.duration_s) = (1.0, duration_s));
    assert!(
        matches!(refused(every_ms(134)), SettingsError::Messages(count) if count > MAX_MESSAGES)
    );
    assert!(matches!(refused(every_ms(3600)), SettingsError::Messages(_)));
    assert!(every_ms(133).study().is_ok());
    // 4 GB are 13,333 messages of 20,000 bytes in each of the 15 runs.
    let large = |duration_s| {
        with(|it| (it.interval_ms, it.size, it.duration_s) = (10.0, 20_000, duration_s))
    };
    let payload = refused(large(134));
    assert!(matches!(payload, SettingsError::Payload(bytes) if bytes > MAX_PAYLOAD_BYTES));
    assert!(payload.to_string().starts_with("4020 MB"), "{payload}");
    assert!(large(133).study().is_ok());
    assert!(matches!(refused(with(|it| it.systems.clear())), SettingsError::NoSystem));
    assert!(matches!(refused(with(|it| it.systems.push("thin".into()))), SettingsError::Twice(_)));
    let tcp = |it: &mut Settings| it.systems = vec!["tcp-cubic".into()];
    assert!(matches!(refused(with(tcp)), SettingsError::Ordered(_)));
    let trace = with(|it| it.rhythm = Rhythm::Trace("../ssh".into()));
    assert!(matches!(refused(trace), SettingsError::Trace(..)));
}

#[test]
fn the_page_of_the_study_has_a_curve_per_system_and_the_bounds() {
    let settings = with(|it| {
        (it.duration_s, it.seeds, it.systems) = (20, 2, vec!["thin".into(), "rack".into()]);
    });
    let study = settings.study().unwrap();
    let page = study.page(|document| {
        let outcome = rexmit_lab::scenario::execute(&document.scenario, document.seed).ok();
        outcome.map(|outcome| study.needed(outcome))
    });
    let labels: Vec<_> = page.figures[0].groups.iter().map(|group| &group.label[..]).collect();
    assert_eq!(labels, ["thin", "rack", "bound without copies", "bound with bundled copies"]);
    assert!(page.figures[0].groups.iter().all(|group| !group.points.is_empty()));
    // Half a round trip is the least latency, of the bounds, too.
    let least = Duration::from_millis(50).as_secs_f64() * 1e3;
    for group in &page.figures[0].groups {
        assert!((group.points[0].x - least).abs() < 1.0, "{}: {:?}", group.label, group.points[0]);
    }
    assert!(page.costs.iter().all(|name| page.cells[0].quantities.contains_key(name)));
}
