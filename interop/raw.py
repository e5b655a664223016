"""Raw IP (protocol 132) over the usual lossy and reordering path: the emulator relays IP packets between
two network namespaces, with the client in one and the server in the other."""

import json
import pathlib
import shlex
import subprocess
import tempfile

import peers

NETWORK, SERVER, CLIENT = "10.90.0.0/24", "10.90.0.1:9899", "10.90.0.2:9899"
PAIRS = [("rexmit", "linux"), ("linux", "rexmit")]


def commands(chosen, client, server, folder):
    """The shell's lines for the server and for the client, which stays until the server has ended."""
    common = ["--over", "ip", "--messages", chosen.messages, "--seed", chosen.seed, "--timeout", chosen.timeout]
    serving = [peers.BUILD / f"peer-{server}", "--role", "server", "--local", SERVER, *common]
    connecting = [peers.BUILD / f"peer-{client}", "--role", "client", "--local", CLIENT, "--remote", SERVER]
    connecting += [*common, "--linger", 30]
    lines = {}
    for name, command in (("server", serving), ("client", connecting)):
        files = {kind: shlex.quote(str(folder / f"{name}.{kind}")) for kind in ("out", "err", "code")}
        line = shlex.join(map(str, command))
        lines[name] = f"{line} >{files['out']} 2>{files['err']}; echo $? >{files['code']}"
    has_ended = f"[ -e {shlex.quote(str(folder / 'server.code'))} ]"
    wait = f"for i in $(seq {chosen.timeout * 10}); do {has_ended} && break; sleep 0.1; done"
    return lines["server"], f"{{ {wait}; }} | {{ {lines['client']}; }}"


def report(folder, name):
    try:
        texts = [(folder / f"{name}.{kind}").read_text() for kind in ("out", "err", "code")]
    except FileNotFoundError:
        return {"error": "did not end", "exit": -1}
    return peers.parse(texts[0], texts[1], int(texts[2]))


def exchange(chosen, emulator, client, server):
    """Both reports and the emulator's; or, in words, why nothing ran."""
    with tempfile.TemporaryDirectory(prefix="interop-raw-") as name:
        folder = pathlib.Path(name)
        serving, connecting = commands(chosen, client, server, folder)
        path = [f"--loss={chosen.loss}%", f"--reorder={chosen.reorder}%", f"--delay={chosen.delay}ms"]
        command = [emulator, "emulate", "--tun", "--tun-network", NETWORK, "--seed", chosen.seed, "--json"]
        command += [*path, "--serve", serving, "--", "sh", "-c", connecting]
        done = subprocess.run(
            list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=2 * chosen.timeout + 10,
        )
        if not (folder / "client.out").exists():
            said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
            return f"no link between namespaces: {said}"
        return {"client": report(folder, "client"), "server": report(folder, "server"),
                "relay": json.loads(done.stdout or "{}")}
