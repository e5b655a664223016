"""Reports tests that did not run to the file that `make test` prints at its end."""

import os


def note(report):
    path = os.environ.get("REXMIT_NOT_RUN")
    if not (path and report.skipped) or hasattr(report, "wasxfail"):
        return
    why = " ".join(report.longrepr[2].split())
    why = why[len("Skipped: ") :] if why.startswith("Skipped: ") else why
    # Those that a variable chooses are not missing.
    if not why.startswith("REXMIT_"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}: {why}\n")


def pytest_runtest_logreport(report):
    note(report)


def pytest_collectreport(report):
    note(report)
