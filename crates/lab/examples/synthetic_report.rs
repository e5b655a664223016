//! Writes a report of synthetic data, to work on its looks before there is anything to report:
//! `cargo run -p rexmit-lab --example synthetic_report -- synthetic.html`

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "synthetic.html".into());
    let comparison = synthetic::comparison(1, 4800);
    print!("{}", rexmit_lab::table::render(&comparison));
    std::fs::write(&path, rexmit_lab::report::html(&comparison)?)?;
    println!("Synthetic report in {path}");
    Ok(())
}
