"""A sweep on Ray, which this test starts and ends: with REXMIT_RAY=1, as `make test-long` sets it."""

import os
import pathlib

import pytest

import lab_kit
from rexmit import lab

if os.environ.get("REXMIT_RAY") != "1":
    pytest.skip("REXMIT_RAY=1 runs it", allow_module_level=True)
ray = pytest.importorskip("ray", reason="Ray could not be installed")


class Losing(lab.RayExecutor):
    """Loses the worker of its third task."""

    tasks = 0

    def submit(self, function, /, *arguments):
        self.tasks += 1
        return super().submit(lab_kit.end_process if self.tasks == 3 else function, *arguments)


@pytest.fixture
def two_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    environment = {"env_vars": {"PYTHONPATH": str(pathlib.Path(__file__).parent)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    yield
    ray.shutdown()


def test_a_sweep_on_ray_survives_a_lost_worker(two_workers, tmp_path, monkeypatch):
    monkeypatch.setattr("rexmit.lab._sweep.TASK_RUNS", 4)
    executor = Losing()
    results = lab_kit.study().run(executor, store=tmp_path / "ray")
    assert (results.found, results.executed, results.failed) == (0, 36, [])
    # Nine tasks, and the runs of the lost one one by one.
    assert executor.tasks == 9 + 4
    assert results.to_polars().equals(lab_kit.study().run(store=tmp_path / "here").to_polars())
