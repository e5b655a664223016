//! The header equals the one generated from the sources. `REXMIT_HEADER=renew` writes it.

use std::path::Path;

#[test]
fn the_header_is_generated_from_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/lib.rs"))
        .generate()
        .expect("sources without errors");
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let generated = String::from_utf8(generated).expect("UTF-8");
    let path = root.join("include/rexmit.h");
    if std::env::var_os("REXMIT_HEADER").is_some_and(|value| value == "renew") {
        std::fs::write(&path, &generated).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "include/rexmit.h is not that of the sources: run REXMIT_HEADER=renew cargo test -p rexmit-capi --test header"
    );
}
