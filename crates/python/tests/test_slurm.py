"""A sweep on a Slurm of one node, which this test starts and ends: with REXMIT_SLURM=1, as `make test-long` sets it."""

import logging
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

import lab_kit

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
PATH = os.environ.get("PATH", "") + ":/usr/sbin"


def what_is_missing():
    if os.environ.get("REXMIT_SLURM") != "1":
        return "REXMIT_SLURM=1 runs it"
    if os.geteuid() != 0:
        return "slurmd needs root"
    if not all(shutil.which(name, path=PATH) for name in PROGRAMS):
        return "install Slurm: apt-get install slurm-wlm munge"
    return None


pytestmark = pytest.mark.skipif(what_is_missing() is not None, reason=what_is_missing() or "")


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A controller and a node with two cores, with keys and state in a directory of their own."""
    place = tmp_path / "slurm"
    place.mkdir()
    key = place / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    host = socket.gethostname().split(".")[0]
    conf = place / "slurm.conf"
    conf.write_text(
        f"""ClusterName=rexmit
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent))
    munge = [f"--{name}={place}/munge.{name}" for name in ("socket", "seed")]
    munge += [f"--key-file={key}", f"--log-file={place}/munged.log", f"--pid-file={place}/munged.pid", "--force"]
    try:
        for command in (["munged", *munge], ["slurmctld", "-f", conf], ["slurmd", "-f", conf]):
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        for _ in range(600):
            state = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, timeout=60)
            if state.stdout.strip() == "idle":
                break
            time.sleep(0.1)
        else:
            logs = "".join(log.read_text()[-2000:] for log in place.glob("*.log"))
            pytest.fail(f"the node of Slurm is not idle: {state.stdout}{state.stderr}\n{logs}")
        yield place
    finally:
        for name in ("slurmd", "slurmctld", "munged"):
            pid = place / f"{name}.pid"
            if pid.exists():
                os.kill(int(pid.read_text()), signal.SIGTERM)


def test_slurm_gives_the_same_as_threads(slurm, tmp_path):
    submitit = pytest.importorskip("submitit")
    # There is no accounting here, of which submitit warns.
    logging.getLogger("submitit").setLevel(logging.ERROR)
    expected = lab_kit.study().run(store=tmp_path / "here").to_polars()
    executor = submitit.AutoExecutor(folder=slurm / "jobs", cluster="slurm")
    executor.update_parameters(timeout_min=10, cpus_per_task=1)
    results = lab_kit.study().run(executor, store=tmp_path / "slurm", task_seconds=0.1)
    assert (results.executed, results.failed) == (36, [])
    assert results.to_polars().equals(expected)
    assert len(list((slurm / "jobs").glob("*_result.pkl"))) > 1, "several jobs"
