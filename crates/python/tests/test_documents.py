"""The programs of the README and of the book run as they are."""

import os
import pathlib
import re
import socket
import subprocess
import sys

CRATE = pathlib.Path(__file__).parent.parent


def programs(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def start(program, *arguments, **settings):
    # In another directory, so that the installed package is imported.
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **{"cwd": "/", **settings})


def test_the_programs_of_the_readme():
    server, client, _ = programs(CRATE / "README.md")
    assert len(client.splitlines()) == 6
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    serving = start(server.replace("9899", port) + "\n")
    try:
        fingerprint = serving.stdout.readline().strip()
        # The server may still be starting: then nothing listens yet.
        for _ in range(50):
            program = client.replace("9899", port).replace("lifetime=0.1", "lifetime=9")
            connecting = start(program, fingerprint)
            output, _ = connecting.communicate(timeout=120)
            if connecting.returncode == 0:
                break
        assert output == "Message(payload=b'hello', stream=0, ppid=0, unordered=False)\n"
    finally:
        serving.terminate()
        serving.communicate()


def test_the_programs_of_the_book():
    transport, sans_io = programs(CRATE.parent.parent / "docs/python.md")
    for program, expected in ((transport, "hello"), (sans_io, "")):
        running = start(program.replace("lifetime=0.1", "lifetime=9"))
        output, _ = running.communicate(timeout=120)
        assert running.returncode == 0
        assert expected in output


def test_the_programs_of_the_page_on_the_lab(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    study, own = programs(CRATE.parent.parent / "docs/python-lab.md")
    (readme,) = (program for program in programs(CRATE / "README.md") if "lab" in program)
    (six_lines,) = programs(CRATE.parent.parent / "README.md")
    assert len(six_lines.splitlines()) == 6
    six_lines = six_lines.replace("with_seeds(3)", "with_seeds(1)").replace("loss=0.02", "loss=0.02, seeds=1")
    for program, expected in (
        (six_lines.replace('"traces/', f'"{CRATE.parent.parent}/traces/'), "Choose interactive"),
        (study.replace("with_seeds(3)", "with_seeds(1)"), "All modifications retransmit more"),
        (own, "10 runs"),
        (readme, "interactive"),
    ):
        running = start(program, cwd=tmp_path, env=environment)
        output, _ = running.communicate(timeout=300)
        assert running.returncode == 0
        assert expected in output
    assert "<svg" in (tmp_path / "first.svg").read_text()
    assert (tmp_path / "report.html").exists()


def test_what_did_not_run_is_listed(tmp_path):
    (tmp_path / "conftest.py").write_text((CRATE / "tests/conftest.py").read_text())
    (tmp_path / "test_them.py").write_text(
        "import pytest\n"
        "def test_without(): pytest.skip('install it')\n"
        "@pytest.mark.skipif(True, reason='REXMIT_LONG=1 runs it')\n"
        "def test_chosen(): pass\n"
        "def test_that_runs(): pass\n"
    )
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('nothing_like_this')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {**os.environ, "REXMIT_NOT_RUN": str(tmp_path / "not-run")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL)
    module, test = sorted((tmp_path / "not-run").read_text().splitlines())
    assert module.startswith("test_module.py: could not import 'nothing_like_this'")
    assert test == "test_them.py::test_without: install it"
