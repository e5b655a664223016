//! The study file: any text is a study, or is refused with the position of a mistake; a study has exactly the runs that
//! it defines.

use rexmit_study::{MAX_MISTAKES, MAX_RUNS, Study};

use bolero::{TypeGenerator, check};

/// The number of random inputs per target in `cargo test`.
const ITERATIONS: usize = 2_000;

/// Reads a file, and checks invariants that hold for any content. Returns whether it is a study.
fn read(text: &str) -> bool {
    match Study::parse("fuzz", text) {
        Ok(study) => {
            let plan = study.plan();
            assert_eq!(plan.len(), study.runs());
            assert!((1..=MAX_RUNS).contains(&plan.len()));
            let page = study.page(|_| None);
            assert_eq!(page.cells.len() * study.seeds.len(), plan.len());
            true
        }
        Err(mistakes) => {
            assert!((1..=MAX_MISTAKES).contains(&mistakes.list.len()));
            let lines = text.split('\n').count();
            assert!(mistakes.list.iter().all(|one| (1..=lines).contains(&one.line)), "{mistakes}");
            false
        }
    }
}

#[test]
fn arbitrary_text() {
    check!().with_iterations(ITERATIONS).for_each(|bytes| {
        read(&String::from_utf8_lossy(bytes));
    });
}

/// Lines of studies, valid and invalid, in any order.
const LINES: &[&str] = &[
    "seeds = 2",
    "title = \"again\"",
    "costs = [\"game.{a,b}{c,d}\"]",
    "[[axis]]\nname = \"a\"\nvalues = [1, 2, 2.5]\nset.duration = \"{}h\"",
    "[[axis]]\nname = \"b\"\nunit = \"ms\"\nvalues = [10, 20]\nset.thin.game.traffic = \"every {}ms size 9\"",
    "[[axis]]\nname = \"c\"\n[[axis.point]]\nlabel = \"x\"",
    "[[axis.point]]\nlabel = \"y\"\nnumber = 3",
    "set.thin.game.profile = \"thin\"",
    "set = 3",
    "labels = [\"x\", \"y\", \"z\"]",
    "values = []",
    "[[claim]]\nsays = \"x\"\nquantity = \"game.latency.mean\"",
    "is = \"below\"\nthan = 100",
    "is = \"above\"\nthan = { at = { a = [1, 2] }, times = 2 }",
    "is = \"level\"\nalong = \"a\"\ntolerance = 0.1",
    "is = \"falling\"\nalong = \"b\"\nover = [\"20 ms\", \"10 ms\"]",
    "is = \"like\"\ndistance = 0.1\nthan.at.a = 1",
    "at = { a = 1, b = [\"10 ms\", 20], c = \"x\" }",
    "at.c = []",
    "[[figure]]\ntitle = \"x\"",
    "kind = \"lines\"\nx = \"a\"\ny = \"game.latency.{mean,p99}\"",
    "kind = \"stacked-bars\"\nx = [\"k\", \"l\"]\ny = [{ label = \"m\", quantity = \"game.latency.{mean,p99}\" }]",
    "kind = \"ccdf\"\nx = \"game.latency\"",
    "kind = \"scatter\"\nx = \"game.latency.mean\"\ny = \"game.latency.p99\"",
    "kind = \"series\"\ny = \"game.rto\"\nseed = 2",
    "x_axis = { log = true, range = [1, 2] }",
    "\"\" = [[[]]]",
];

const HEAD: &str = "title = \"Anything\"\nseeds = 1\n";
const SCENARIO: &str = "[scenario]\nduration = \"1h\"\nnetwork.forward = \"delay 50ms\"\n\
                        [scenario.thin.game]\ntraffic = \"every 250ms size 100\"\nprofile = \"lksctp\"\n";

/// A study that consists of some of those lines.
#[derive(Debug, TypeGenerator)]
struct Draft {
    lines: Vec<u8>,
    is_headless: bool,
    /// A byte that is replaced afterwards: its offset, and the value.
    damage: Option<(u16, u8)>,
}

impl Draft {
    fn text(&self) -> String {
        let lines = self.lines.iter().take(24).map(|&line| LINES[usize::from(line) % LINES.len()]);
        let lines: Vec<&str> = lines.collect();
        let head = if self.is_headless { "" } else { HEAD };
        let mut text = format!("{head}{SCENARIO}{}\n", lines.join("\n")).into_bytes();
        if let Some((at, byte)) = self.damage {
            let at = usize::from(at) % text.len();
            text[at] = byte;
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[test]
fn nearly_valid_studies() {
    let right = std::sync::atomic::AtomicUsize::new(0);
    check!().with_type::<Draft>().with_iterations(ITERATIONS).for_each(|draft| {
        if read(&draft.text()) {
            right.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(right.into_inner() > 0, "no draft was right");
}
