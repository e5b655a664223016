//! Writes the page of a synthetic study, for work on its layout:
//! `cargo run -p rexmit-study --example synthetic_study -- synthetic-study.html index.html`

#[path = "../tests/synthetic_study/mod.rs"]
mod synthetic_study;

use rexmit_study::page::study;

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "synthetic-study.html".into());
    let page = synthetic_study::page(1);
    std::fs::write(&path, study::html(&page)?)?;
    println!("The page of a synthetic study in {path}");
    if let Some(path) = std::env::args().nth(2) {
        std::fs::write(&path, study::index(&[(&page).into()]))?;
        println!("An index of it in {path}");
    }
    Ok(())
}
