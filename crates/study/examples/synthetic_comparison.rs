//! Writes the page of a synthetic comparison, for work on its layout:
//! `cargo run -p rexmit-study --example synthetic_comparison -- synthetic.html`

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "synthetic.html".into());
    let comparison = synthetic::comparison(1, 4800);
    print!("{}", rexmit_lab::table::render(&comparison));
    std::fs::write(&path, rexmit_study::page::comparison::html(&comparison)?)?;
    println!("The page of a synthetic comparison in {path}");
    Ok(())
}
