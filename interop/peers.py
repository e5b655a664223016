"""The peers as processes: how they are started and ended, and what they report."""

import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE / "build"


def missing(name):
    """Why a peer cannot be run, or None."""
    if (BUILD / f"peer-{name}").exists():
        return None
    reason = BUILD / f"{name}.missing"
    return reason.read_text().strip() if reason.exists() else "not built: run make -C interop"


def start(command):
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, timeout):
    """Lets a process end, by force if it must be; its report, or what it said instead."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate()
    return parse(out, err, process.returncode)


def parse(out, err, code):
    """The report in what a process printed, or what it said instead."""
    try:
        report = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        said = (err.strip() or "printed no report").splitlines()[0]
        report = {"error": f"{said} (exit code {code})"}
    return {**report, "exit": code}


def complaint(report):
    names = ("received", "lost", "duplicated", "out_of_order", "corrupted")
    parts = [f"{name} {report[name]}" for name in names if report.get(name)]
    if report.get("graceful_shutdown") is False:
        parts.append("no graceful shutdown")
    return ", ".join(parts + ([report["error"]] if report.get("error") else []))
