"""Sweeps by executors: workers that are lost, of another version, interrupted."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import types

import pytest

import lab_kit
import rexmit
from rexmit import lab


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The results on threads of this process."""
    results = lab_kit.study().run(store=tmp_path_factory.mktemp("here"))
    assert (results.found, results.executed) == (0, 36)
    return results.to_polars()


@pytest.fixture
def single_runs(monkeypatch):
    """Tasks of one run each, so that there are many."""
    monkeypatch.setattr(lab._sweep, "TASK_RUNS", 1)


class Inline:
    """Runs a task when it is submitted; `before` may raise."""

    def __init__(self, before=lambda number: None):
        self.tasks = 0
        self.before = before

    def submit(self, function, /, *arguments):
        self.tasks += 1
        future = concurrent.futures.Future()
        try:
            self.before(self.tasks)
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future


class Job:
    """A future as submitit's: without callbacks."""

    def __init__(self, future):
        self.done = future.done
        self.result = future.result
        self.cancel = future.cancel


def test_threads_processes_and_futures_without_callbacks_give_the_same(expected, tmp_path):
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert lab_kit.study().run(pool, store=tmp_path / "threads").to_polars().equals(expected)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        assert lab_kit.study().run(pool, store=tmp_path / "processes").to_polars().equals(expected)
    inline = Inline()
    inline_submit = inline.submit
    inline.submit = lambda *arguments: Job(inline_submit(*arguments))
    assert lab_kit.study().run(inline, store=tmp_path / "jobs").to_polars().equals(expected)


def test_an_executor_of_ray_is_made_of_its_remote_functions(expected, tmp_path, monkeypatch):
    """With the part of Ray's interface that is used; test_ray.py has Ray itself."""

    class Remote:
        def __init__(self, function):
            made.append(function)
            self.function = function

        def remote(self, *arguments):
            future = concurrent.futures.Future()
            future.set_result(self.function(*arguments))
            return types.SimpleNamespace(future=lambda: future)

    def remote(**options):
        given.append(options)
        return Remote

    made, given = [], []
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(remote=remote))
    assert lab_kit.study().run(lab.RayExecutor(num_cpus=1), store=tmp_path).to_polars().equals(expected)
    assert made == [lab._worker.execute] and given == [{"max_retries": 0, "num_cpus": 1}]
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match="pip install ray"):
        lab.RayExecutor()


def test_progress_is_reported_and_results_are_found_again(expected, tmp_path, single_runs):
    seen = []
    lab_kit.study().run(Inline(), seen.append, store=tmp_path)
    assert [progress.done for progress in seen] == list(range(37))
    assert {progress.runs for progress in seen} == {36} and seen[1].seconds_left > 0
    executor = Inline()
    again = lab_kit.study(seeds=7).run(executor, store=tmp_path)
    assert (again.found, again.executed, executor.tasks) == (36, 6, 6)
    here = lab_kit.study(seeds=7).run(store=tmp_path)
    assert (here.found, here.executed) == (42, 0)


def test_progress_is_a_line_every_ten_seconds_without_a_terminal(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(lab._sweep, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)

    def told(report, *steps):
        for at, done in steps:
            now[0] = 100.0 + at
            report(lab.Progress(40, done, 1, 60.0 - at))
        now[0] = 100.0
        return capsys.readouterr().err

    steps = ((0, 0), (4, 5), (9.9, 10), (10, 11), (15, 12), (19.9, 13), (25, 20), (26, 39))
    assert told(lab._sweep.reporter(True), *steps).splitlines() == [
        "11 of 40 runs, 1 failed, about 50 s remain",
        "20 of 40 runs, 1 failed, about 35 s remain",
        "39 of 40 runs, 1 failed",
    ]
    assert told(lab._sweep.reporter(True), (0, 0), (5, 39)) == ""
    assert told(lab._sweep.reporter(False), *steps) == ""


def test_a_task_has_as_many_runs_as_it_may(expected, tmp_path):
    executor = Inline()
    results = lab_kit.study().run(executor, store=tmp_path / "one", task_seconds=1000)
    assert executor.tasks == 1 and results.to_polars().equals(expected)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="above zero"):
            lab_kit.study().run(executor, store=tmp_path, task_seconds=wrong)
    with pytest.raises(ValueError, match="choose an executor"):
        lab_kit.study().run(store=tmp_path, task_seconds=1)


@pytest.mark.parametrize("interrupted_by", ["executor", "threads"])
def test_an_interrupted_sweep_goes_on(expected, tmp_path, single_runs, interrupted_by):
    def stop(progress):
        if progress.done >= 7:
            raise KeyboardInterrupt

    study = lab_kit.study() if interrupted_by == "executor" else lab_kit.study("20min")
    executor = Inline() if interrupted_by == "executor" else None
    with pytest.raises(KeyboardInterrupt):
        study.run(executor, stop, store=tmp_path, **({} if executor else {"jobs": 1}))
    # The runs in progress on threads end first.
    for thread in threading.enumerate():
        if thread.name == "rexmit sweep":
            thread.join()
    again = study.run(store=tmp_path)
    assert 7 <= again.found < 36 and again.found + again.executed == 36
    if executor:
        assert again.to_polars().equals(expected)


def test_tasks_of_lost_workers_are_tried_again(expected, tmp_path):
    def lose(number):
        if number in (1, 3, 4):
            raise OSError("the worker is gone")

    results = lab_kit.study().run(Inline(lose), store=tmp_path)
    assert (results.executed, results.failed) == (36, [])
    assert results.to_polars().equals(expected)


def test_a_run_that_always_loses_its_worker_fails_alone(tmp_path, monkeypatch):
    lost = lab_kit.study()._study.sweep(lab._worker.module_file(), str(tmp_path)).missing()[20][0]

    class Losing(Inline):
        def submit(self, function, version, program, tasks):
            self.before = lambda _: (_ for _ in ()).throw(OSError("gone")) if lost in dict(tasks) else None
            return super().submit(function, version, program, tasks)

    results = lab_kit.study().run(Losing(), store=tmp_path)
    (failed,) = results.failed
    assert results.executed == 35 and "lost, or failed, 4 times: OSError: gone" in failed.error
    assert set(failed.point) == {"profile", "loss"}
    row = results.to_polars().filter(run=lost)
    assert row["error"].item() == failed.error and row["game.latency.p99"].item() is None
    again = lab_kit.study().run(store=tmp_path)
    assert (again.found, again.executed, again.failed) == (35, 1, [])


@pytest.mark.parametrize("garbage", [None, 7, "text", [], [("0", b"", None)], [(1, 2)], "keys", "ab", ("?", "why")])
def test_runs_of_which_nothing_useful_was_returned_are_tried_again(expected, tmp_path, garbage):
    class Careless(Inline):
        def submit(self, function, /, *arguments):
            future = super().submit(function, *arguments)
            if self.tasks > 2:
                return future
            bad = concurrent.futures.Future()
            keys = [key for key, _ in arguments[2]]
            # Without a result, and with values that have not the form of a failure.
            shapes = {"keys": None, "ab": "ab", ("?", "why"): ("?", "why")}
            is_of_keys = isinstance(garbage, (str, tuple)) and garbage in shapes
            bad.set_result([(key, None, shapes[garbage]) for key in keys] if is_of_keys else garbage)
            return bad

    results = lab_kit.study().run(Careless(), store=tmp_path)
    assert (results.executed, results.failed) == (36, [])
    assert results.to_polars().equals(expected)


def test_a_run_whose_results_are_always_damaged_fails_alone(tmp_path):
    damaged = lab_kit.study()._study.sweep(lab._worker.module_file(), str(tmp_path)).missing()[20][0]

    class Damaging(Inline):
        def submit(self, function, /, *arguments):
            done = function(*arguments)
            future = concurrent.futures.Future()
            future.set_result([(key, file[:-1] if key == damaged else file, failure) for key, file, failure in done])
            return future

    results = lab_kit.study().run(Damaging(), store=tmp_path)
    (failed,) = results.failed
    assert results.executed == 35 and "4 times: RunError: the result of run" in failed.error


def test_errors_of_modules_that_are_not_ours_are_failures_of_workers(tmp_path):
    raised = iter(
        [
            ModuleNotFoundError("No module named 'numpy'"),
            ImportError("cannot import name 'foo' (/opt/rexmit/numpy)", name="numpy"),
            AttributeError("'NoneType' object has no attribute 'rexmit'"),
            asyncio.CancelledError(),
            SystemExit(3),
        ]
    )

    def fail(_):
        for error in raised:
            raise error

    assert lab_kit.study().run(Inline(fail), store=tmp_path).failed == []
    assert next(raised, None) is None, "each was raised"


def test_an_executor_without_workers_is_reported(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn, initializer=lab_kit.end_process) as pool:
        with pytest.raises(lab.RunError, match="run again with a new executor"):
            lab_kit.study().run(pool, store=tmp_path)


def test_a_script_that_processes_import_is_told_of_the_guard(tmp_path):
    script = tmp_path / "script.py"
    body = (
        "import concurrent.futures, multiprocessing, sys\n"
        "from rexmit import lab\n"
        "flow = lab.ThinFlow(traffic='every 250ms size 100')\n"
        "scenario = lab.Scenario(duration='1s', network=lab.Network('delay 50ms'), thin={'game': flow})\n"
    )
    work = (
        "with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:\n"
        "    lab.Study(title='One', scenario=scenario, seeds=1).run(pool, store=sys.argv[1])\n"
    )
    guarded = 'if __name__ == "__main__":\n' + "".join(f"    {line}\n" for line in work.splitlines())
    for text, is_told in ((body + work, True), (body + guarded, False)):
        script.write_text(text)
        command = [sys.executable, str(script), str(tmp_path / "store")]
        ran = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=120)
        assert (ran.returncode != 0) == is_told, ran.stderr
        errors = [line for line in ran.stderr.splitlines() if "RunError: the executor lost" in line]
        assert bool(errors) == is_told and all('`if __name__ == "__main__":`' in line for line in errors)


def test_a_worker_with_another_version_is_refused_with_both_versions(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    initializer = lab_kit.pretend_another_version
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn, initializer=initializer) as pool:
        with pytest.raises(lab.WorkerVersionError, match=f"has rexmit 0.0.1, .* by rexmit {rexmit.__version__}"):
            lab_kit.study().run(pool, store=tmp_path)
    program = rexmit._rexmit.program(lab._worker.module_file())
    refusal = lab._worker.execute(rexmit.__version__, "0" * 64, [])
    assert re.search(f"another build of .*{program[:12]}.*000000000000", refusal.text)

    def without_module(_):
        raise ModuleNotFoundError("No module named 'rexmit.lab'", name="rexmit.lab")

    with pytest.raises(lab.WorkerVersionError, match=f"no rexmit.lab .* rexmit {rexmit.__version__}"):
        lab_kit.study().run(Inline(without_module), store=tmp_path)


def test_a_result_of_another_run_or_build_is_refused(tmp_path):
    sweep = lab_kit.study()._study.sweep(lab._worker.module_file(), str(tmp_path))
    (key, document, _), (other, *_), *_ = sweep.missing()
    file, failure = rexmit._rexmit.execute_run(document, lab._worker.module_file())
    assert failure is None
    for wrong_key, wrong_file in ((other, file), (key, file[:-1]), (key, b"")):
        with pytest.raises(lab.RunError, match="was refused"):
            sweep.add(wrong_key, wrong_file)
    built_otherwise = tmp_path / "module"
    built_otherwise.write_bytes(b"another")
    file_of_other, _ = rexmit._rexmit.execute_run(document, str(built_otherwise))
    with pytest.raises(lab.RunError, match="was refused"):
        sweep.add(key, file_of_other)
    with pytest.raises(ValueError, match="no run"):
        sweep.add("0", file)
    assert sweep.progress()[1] == 0
    sweep.add(key, file)
    assert len(sweep.missing()) == 35


def test_a_result_that_arrives_again_is_ignored(tmp_path):
    sweep = lab_kit.study()._study.sweep(lab._worker.module_file(), str(tmp_path))
    (key, document, _), (other, *_), *_ = sweep.missing()
    file, _ = rexmit._rexmit.execute_run(document, lab._worker.module_file())
    sweep.add(key, file)
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    for _ in range(2):
        sweep.add(key, file)
        sweep.fail(key, "failed", "its worker was lost")
        sweep.fail(other, "failed", "its worker was lost")
    assert sweep.progress()[:3] == (36, 1, 1)
    assert stored == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    # One that the store had when the sweep began is settled, too.
    again = lab_kit.study()._study.sweep(lab._worker.module_file(), str(tmp_path))
    assert len(again.missing()) == 35
    again.add(key, file)
    assert again.progress()[:3] == (36, 1, 0)


class Counting:
    """A sweep that notes the runs for which results and failures arrive."""

    def __init__(self, sweep):
        self._sweep = sweep
        self.added, self.failed = [], []

    def add(self, key, file):
        self.added.append(key)
        self._sweep.add(key, file)

    def fail(self, key, kind, what):
        self.failed.append(key)
        self._sweep.fail(key, kind, what)

    def __getattr__(self, name):
        return getattr(self._sweep, name)


@pytest.fixture
def counted(monkeypatch):
    """The sweeps that executors have run, as `Counting`."""
    sweeps = []
    run_elsewhere = lab._study.run_elsewhere

    def run(sweep, *arguments):
        sweeps.append(Counting(sweep))
        run_elsewhere(sweeps[-1], *arguments)

    monkeypatch.setattr(lab._study, "run_elsewhere", run)
    return sweeps


def test_dask_loses_a_worker_in_mid_sweep_and_no_run_is_lost_or_twice(expected, tmp_path, single_runs, counted):
    distributed = pytest.importorskip("distributed")
    study = lab_kit.study("10min", seeds=12)
    expected = study.run(store=tmp_path / "here").to_polars()
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        workers = client.run(os.getpid)
        assert len(set(workers.values())) == 2
        killed = []

        def kill(progress):
            if progress.done >= 10 and not killed:
                killed.append(next(iter(workers.values())))
                os.kill(killed[0], signal.SIGKILL)

        results = study.run(client.get_executor(), kill, store=tmp_path / "dask")
        # The nanny has started another; until then the other one went on alone.
        assert killed and killed[0] not in client.run(os.getpid).values()
    assert (results.found, results.executed, results.failed) == (0, 72, [])
    assert results.to_polars().equals(expected)
    assert results.to_polars()["run"].n_unique() == 72
    (sweep,) = counted
    assert sweep.failed == [] and sorted(sweep.added) == results.to_polars()["run"].sort().to_list()
