//! Programs in C and C++ against the installed library.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Whether the tools are installed; prints the missing one.
fn has(tools: &[&str]) -> bool {
    let is_missing = |tool: &&&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
        !found.is_ok_and(|output| output.status.success())
    };
    let missing = tools.iter().find(is_missing);
    missing
        .inspect(|tool| {
            rexmit_testkit::not_run(format_args!("{tool} is missing; `make setup` installs it"));
        })
        .is_none()
}

/// The common parts of all tests.
const C: [&str; 2] = ["cc", "pkg-config"];

/// The library, installed into a directory of its own.
struct Installed {
    prefix: TempDir,
}

impl Installed {
    fn get() -> Option<&'static Self> {
        static INSTALLED: OnceLock<Installed> = OnceLock::new();
        has(&C).then(|| INSTALLED.get_or_init(Self::new))
    }

    fn new() -> Self {
        let prefix = TempDir::new().expect("a directory");
        let archive = archive();
        run(Command::new(root().join("../../scripts/install-c"))
            .arg("--prefix")
            .arg(prefix.path())
            .arg("--archive")
            .arg(archive));
        Self { prefix }
    }

    /// The output of pkg-config.
    fn flags(&self, asked: &[&str]) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", self.prefix.path().join("lib/pkgconfig"));
        let text = run(command.args(asked).arg("rexmit"));
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles one source, and returns the program.
    fn compile(&self, source: &Path, name: &str, options: &[&str]) -> PathBuf {
        let is_cpp = source.extension().is_some_and(|extension| extension == "cpp");
        let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
        let program = self.prefix.path().join(name);
        let mut command = Command::new(compiler);
        command.args([
            standard,
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-g",
        ]);
        command.args(options).args(self.flags(&["--cflags"])).arg(source);
        run(command.arg("-o").arg(&program).args(self.flags(&["--libs"])));
        program
    }

    fn example(&self, name: &str) -> PathBuf {
        self.compile(&root().join("examples").join(name), &name.replace('.', "_"), &[])
    }

    /// As [`compile`](Self::compile), with the sanitizers for addresses and undefined behaviour.
    fn sanitized(&self, source: &str) -> PathBuf {
        let name = format!("sanitized_{}", source.replace(['/', '.'], "_"));
        let options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        self.compile(&root().join(source), &name, &options)
    }

    /// A command that runs a program with the shared library.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.prefix.path().join("lib"));
        command
    }

    /// As [`command`], under valgrind, which reports invalid accesses and leaks.
    fn checked(&self, program: &Path) -> Command {
        self.checked_with(program, &[])
    }

    /// As [`checked`](Self::checked), with further options of valgrind.
    fn checked_with(&self, program: &Path, options: &[&str]) -> Command {
        if !has(&["valgrind"]) {
            return self.command(program);
        }
        let mut command = self.command(Path::new("valgrind"));
        command.args(["--quiet", "--error-exitcode=99", "--leak-check=full"]);
        command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
        command.args(options).arg(program);
        command
    }
}

/// The static library that Cargo has built for this test, in the same directory.
fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let built = std::fs::read_dir(test.parent().expect("a directory")).expect("a directory");
    let paths = built.map(|entry| entry.expect("an entry").path());
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("librexmit_c") && name.ends_with(".a")
    };
    let modified = |path: &PathBuf| path.metadata().and_then(|it| it.modified()).expect("a time");
    paths.filter(is_archive).max_by_key(modified).expect("librexmit_c.a beside the test")
}

/// A process that is killed at the end of the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that must succeed, and returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[test]
fn messages_cross_a_lossy_link_without_sockets() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.example("sans_io.c");
    let text = run(&mut installed.checked(&program));
    assert!(text.starts_with("100 of 100 messages"), "{text}");
    // Deterministic: the same seed, the same figures.
    assert_eq!(text, run(&mut installed.command(&program)));
}

#[test]
fn a_server_echoes_in_an_event_loop() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.example("echo.c");
    // The server ends by a signal, so that its status says nothing.
    let log = installed.prefix.path().join("echo.log");
    let option = format!("--log-file={}", log.display());
    let server = installed.checked_with(&program, &[&option]);
    echoes(server, || installed.checked(&program), || installed.command(&program));
    let found = std::fs::read_to_string(log).unwrap_or_default();
    assert!(found.is_empty(), "{found}");
}

#[test]
fn a_deadline_of_cpp_is_no_lifetime() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.compile(&root().join("tests/delivery.cpp"), "delivery", &[]);
    run(&mut installed.command(&program));
}

#[test]
fn a_static_program_links_as_pkg_config_says() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.prefix.path().join("echo_static");
    let mut command = Command::new("cc");
    command.arg("-static").args(installed.flags(&["--cflags"]));
    command.arg(root().join("examples/echo.c")).arg("-o").arg(&program);
    run(command.args(installed.flags(&["--static", "--libs"])));
    // Without the path of the library.
    let output = Command::new(&program).output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    assert!(String::from_utf8_lossy(&text).contains("usage"), "{text:?}");
}

/// A server of the example, and two clients: one that trusts it, and one that does not.
fn echoes(mut command: Command, trusting: impl Fn() -> Command, distrustful: impl Fn() -> Command) {
    command.args(["server", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut server = Killed(command.spawn().expect("a server"));
    let output = BufReader::new(server.0.stdout.take().expect("a pipe"));
    let mut lines = output.lines().map(|line| line.expect("a line"));
    let mut after = |prefix| {
        let line = lines.next().expect("a line");
        line.strip_prefix(prefix).expect(prefix).to_owned()
    };
    let (fingerprint, address) = (after("fingerprint "), after("listening on "));
    let text = run(trusting().args(["client", &address, &fingerprint, "hello from C"]));
    assert_eq!(text, "hello from C\n");
    let wrong = fingerprint.replace(|c: char| c.is_ascii_digit(), "A");
    let refused = distrustful().args(["client", &address, &wrong, "hello"]).output();
    let refused = refused.expect("a client");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("refused here: the peer's certificate"), "{text}");
    assert!(text.contains(&fingerprint) && !refused.status.success(), "{text}");
    run(Command::new("kill").args(["-TERM", &server.0.id().to_string()]));
    server.0.wait().expect("a status");
}

#[test]
fn encryption_priorities_and_dropped_messages_reach_c() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.compile(&root().join("tests/encrypted.c"), "encrypted", &[]);
    run(&mut installed.checked(&program));
}

#[test]
fn settings_and_calls_of_associations_have_their_effects_in_c() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.compile(&root().join("tests/associations.c"), "associations", &[]);
    run(&mut installed.checked(&program));
}

#[test]
fn deadlines_budgets_and_every_profile_reach_c() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.compile(&root().join("tests/deadlines.c"), "deadlines", &[]);
    run(&mut installed.command(&program));
    // A quarter of the messages: the whole takes a minute.
    let source = root().join("tests/deadlines.c");
    let program = installed.compile(&source, "deadlines_checked", &["-DMESSAGES=1000"]);
    run(&mut installed.checked(&program));
}

#[test]
fn a_game_loop_in_cpp_serves_its_clients() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.example("game.cpp");
    let text = run(installed.command(&program).args(["5", "1.5"]));
    assert!(text.starts_with("5 of 5 clients"), "{text}");
    // In real time: handshakes take valgrind a second or two.
    let text = run(installed.checked(&program).args(["2", "10"]));
    assert!(text.starts_with("2 of 2 clients"), "{text}");
}

/// Sanitizers check how the program uses the results; the library is built without them.
#[test]
fn examples_pass_the_address_and_undefined_behaviour_sanitizers() {
    let Some(installed) = Installed::get() else { return };
    for (source, arguments) in [
        ("examples/sans_io.c", &[][..]),
        ("tests/associations.c", &[]),
        ("tests/encrypted.c", &[]),
        ("tests/deadlines.c", &[]),
        ("examples/game.cpp", &["5", "1.5"]),
    ] {
        let program = installed.sanitized(source);
        run(installed.command(&program).args(arguments));
    }
    let program = installed.sanitized("examples/echo.c");
    let command = || installed.command(&program);
    echoes(command(), command, command);
}

/// The thread sanitizer checks the program; it sees of the library only the calls of libc.
#[test]
fn endpoints_of_different_threads_are_independent() {
    let Some(installed) = Installed::get() else { return };
    let source = root().join("tests/threads.c");
    let options = ["-fsanitize=thread", "-pthread"];
    let program = installed.compile(&source, "threads_sanitized", &options);
    let text = run(&mut installed.command(&program));
    assert_eq!(text, "800 of 800 messages\n");
    let program = installed.compile(&source, "threads_checked", &["-pthread"]);
    assert_eq!(run(&mut installed.checked(&program)), text);
}

#[test]
fn wrong_use_is_an_error_and_never_a_crash() {
    let Some(installed) = Installed::get() else { return };
    let program = installed.compile(&root().join("tests/misuse.c"), "misuse", &[]);
    run(&mut installed.checked(&program));
}

/// Programs compiled with the frozen header, that of an early 0.2.0, run with the present library. Once there is a release,
/// its header takes the place of the frozen one.
#[test]
fn programs_compiled_with_the_frozen_header_run() {
    let Some(installed) = Installed::get() else { return };
    let include = format!("-I{}", root().join("tests/abi").display());
    let program = installed.compile(&root().join("examples/sans_io.c"), "frozen", &[&include]);
    let text = run(&mut installed.command(&program));
    assert!(text.starts_with("100 of 100 messages"), "{text}");
    let source = root().join("tests/associations.c");
    let program = installed.compile(&source, "frozen_calls", &[&include, "-DFROZEN"]);
    run(&mut installed.command(&program));
}

#[test]
fn only_the_api_is_visible_and_its_symbols_have_versions() {
    let Some(installed) = Installed::get() else { return };
    let library = installed.prefix.path().join("lib/librexmit.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    // The version itself is a symbol, too.
    let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2));
    let names: Vec<_> = names.filter(|name| !name.starts_with("REXMIT_0.2")).collect();
    let is_ours = |name: &&str| name.starts_with("rexmit_") && name.ends_with("@@REXMIT_0.2");
    assert!(names.len() > 50 && names.iter().all(is_ours), "{names:?}");
    let header = std::fs::read_to_string(root().join("include/rexmit.h")).expect("the header");
    for name in names {
        let name = name.split('@').next().expect("a name");
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
}

/// The functions of the header.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(root().join("include/rexmit.h")).expect("the header");
    let calls = header.split('(').filter_map(|before| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
        name.starts_with("rexmit_").then(|| name.to_owned())
    });
    calls.collect()
}

/// A function that no program in C calls is untested: `tests/associations.c` has the calls that no other program needs.
#[test]
fn every_function_of_the_header_is_called_by_a_program_in_c() {
    let Some(installed) = Installed::get() else { return };
    let mut called = BTreeSet::new();
    for folder in ["tests", "examples"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let source = entry.expect("an entry").path();
            if source.extension().is_none_or(|extension| extension != "c") {
                continue;
            }
            let program = installed.compile(&source, "calls", &["-pthread"]);
            let symbols = run(Command::new("nm").arg("--undefined-only").arg(program));
            let names = symbols.split_whitespace().filter(|name| name.starts_with("rexmit_"));
            called.extend(names.map(|name| name.split('@').next().unwrap_or(name).to_owned()));
        }
    }
    let declared = declared();
    assert!(declared.len() >= 80, "{declared:?}");
    let uncalled: Vec<_> = declared.difference(&called).collect();
    assert!(uncalled.is_empty(), "no program in C calls {uncalled:?}");
}

/// The code of the documentation compiles.
#[test]
fn the_code_of_the_documentation_compiles() {
    let Some(installed) = Installed::get() else { return };
    let mut compiled = 0;
    for page in ["c.md", "from-usrsctp.md"] {
        let text = std::fs::read_to_string(root().join("../../docs").join(page)).expect("a page");
        for (language, code) in blocks(&text) {
            let extension = match language {
                "c" => "c",
                "cpp" => "cpp",
                _ => continue,
            };
            if code.contains("usrsctp.h") && !Path::new("/usr/include/usrsctp.h").exists() {
                rexmit_testkit::not_run(format_args!("a block of {page} needs libusrsctp-dev"));
                continue;
            }
            let source = installed.prefix.path().join(format!("block{compiled}.{extension}"));
            std::fs::write(&source, code).expect("a file");
            let object = source.with_extension("o");
            let compiler = if extension == "c" { "cc" } else { "c++" };
            run(Command::new(compiler)
                .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-c"])
                .args(installed.flags(&["--cflags"]))
                .arg(&source)
                .arg("-o")
                .arg(object));
            compiled += 1;
        }
    }
    assert!(compiled >= 4, "{compiled} blocks");
}

/// The code in the comments of the header: statements, in a function that has an endpoint and its association.
#[test]
fn the_code_of_the_header_compiles() {
    let Some(installed) = Installed::get() else { return };
    let header = std::fs::read_to_string(root().join("include/rexmit.h")).expect("a header");
    let comments: Vec<_> = header
        .lines()
        .map(|line| line.strip_prefix(" * ").or(line.strip_prefix(" *")).unwrap_or(line))
        .collect();
    let comments = comments.join("\n");
    let before = "#include <stdio.h>\n#include \"rexmit.h\"\n\
        void send_datagram(const uint8_t *bytes, size_t length, const rexmit_address *to);\n\
        void set_timer(uint64_t at);\n";
    let mut source = String::from(before);
    let blocks = blocks(&comments);
    assert!(blocks.len() >= 7, "{blocks:?}");
    for (number, (_, code)) in blocks.into_iter().enumerate() {
        let given =
            [("rexmit_endpoint *", "endpoint"), ("uint64_t ", "association"), ("uint64_t ", "now")];
        // Variables that the code declares are no parameters.
        let is_given = |name: &str| {
            !code.contains(&format!("*{name};")) && !code.contains(&format!("uint64_t {name};"))
        };
        let given = given.into_iter().filter(|(_, name)| is_given(name));
        let given: Vec<_> = given.map(|(kind, name)| format!("{kind}{name}")).collect();
        let given = given.join(", ");
        source.push_str(&format!(
            "void block{number}({given});\nvoid block{number}({given}) {{\n{code}}}\n"
        ));
    }
    let path = installed.prefix.path().join("header_blocks.c");
    std::fs::write(&path, source).expect("a file");
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-c"])
        .args(installed.flags(&["--cflags"]))
        .arg(&path)
        .arg("-o")
        .arg(path.with_extension("o")));
}

/// The clients of both libraries are run as the page has them, but for the ports.
#[test]
fn the_clients_of_the_page_about_usrsctp_print_the_reply() {
    let Some(installed) = Installed::get() else { return };
    let server = installed.compile(&root().join("tests/plain_echo.c"), "plain_echo", &[]);
    let mut server = installed.command(&server);
    server.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = Killed(server.spawn().expect("a server"));
    let output = BufReader::new(server.0.stdout.take().expect("a pipe"));
    let address = output.lines().next().expect("a line").expect("text");
    let port = address.rsplit(':').next().expect("a port");
    let page = std::fs::read_to_string(root().join("../../docs/from-usrsctp.md")).expect("a page");
    let mut clients = 0;
    for (number, (_, code)) in
        blocks(&page).into_iter().filter(|(language, _)| *language == "c").enumerate()
    {
        let is_theirs = code.contains("usrsctp.h");
        if is_theirs && !Path::new("/usr/include/usrsctp.h").exists() {
            rexmit_testkit::not_run("the client of usrsctp needs libusrsctp-dev");
            continue;
        }
        let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.local_addr());
        let own = own.expect("a free port").port().to_string();
        let code = code.replace("9899", port).replace("9900", &own);
        let source = installed.prefix.path().join(format!("client{number}.c"));
        std::fs::write(&source, code).expect("a file");
        let client = source.with_extension("");
        let mut command = Command::new("cc");
        command.args(installed.flags(&["--cflags"])).arg(&source).arg("-o").arg(&client);
        command.args(installed.flags(&["--libs"]));
        run(command.args(if is_theirs { &["-lusrsctp", "-lpthread"][..] } else { &[] }));
        let mut command = installed.command(Path::new("timeout"));
        assert_eq!(run(command.arg("60").arg(&client)), "hello\n");
        clients += 1;
    }
    assert!(clients >= 1, "the page has no client");
}

/// The blocks of code of a page, with their languages.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts: Vec<_> = page.split("```").collect();
    let inside = parts.into_iter().skip(1).step_by(2);
    inside.filter_map(|block| block.split_once('\n')).collect()
}
