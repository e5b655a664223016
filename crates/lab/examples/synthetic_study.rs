//! Writes the page of a made-up study, to work on its looks before there is anything to report:
//! `cargo run -p rexmit-lab --example synthetic_study -- synthetic-study.html index.html`

#[path = "../tests/synthetic_study/mod.rs"]
mod synthetic_study;

use rexmit_lab::study_report;

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "synthetic-study.html".into());
    let report = synthetic_study::report(1);
    std::fs::write(&path, study_report::html(&report)?)?;
    println!("The page of a synthetic study in {path}");
    if let Some(path) = std::env::args().nth(2) {
        std::fs::write(&path, study_report::index(&[(&report).into()]))?;
        println!("An index of it in {path}");
    }
    Ok(())
}
