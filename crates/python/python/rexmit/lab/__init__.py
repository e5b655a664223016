"""The laboratory: studies of latency and cost over simulated networks, in virtual time.

`Study` defines many runs, which threads, processes or a cluster execute; `simulate` is one run with its packets. Frames
and charts need the extra ``lab``: ``pip install '.[lab]'`` in a clone.
"""

from .._rexmit import Table
from ._advice import Advice, ProfileCost, advise
from ._analysis import CaptureAnalysis, analyse
from ._capture import Capture, messages, read_capture
from ._errors import RunError, StoreError, StudyError, UnknownStudyError, WorkerVersionError
from ._ray import RayExecutor
from ._results import Comparison, Estimate, FailedRun, Results, Verdict
from ._schema import (
    Axis,
    BulkFlow,
    Change,
    Claim,
    Figure,
    KernelHosts,
    Network,
    Point,
    Receiver,
    Scenario,
    ThinFlow,
    UdpFlow,
    WebFlow,
)
from ._simulate import Run, run_scenario, simulate
from ._study import STUDIES, Plan, Study
from ._sweep import Executor, Progress

__all__ = [
    "Advice",
    "Axis",
    "BulkFlow",
    "Capture",
    "CaptureAnalysis",
    "Change",
    "Claim",
    "Comparison",
    "Estimate",
    "Executor",
    "FailedRun",
    "Figure",
    "KernelHosts",
    "Network",
    "Plan",
    "Point",
    "ProfileCost",
    "Progress",
    "RayExecutor",
    "Receiver",
    "Results",
    "Run",
    "RunError",
    "STUDIES",
    "Scenario",
    "StoreError",
    "Study",
    "StudyError",
    "Table",
    "ThinFlow",
    "UdpFlow",
    "UnknownStudyError",
    "Verdict",
    "WebFlow",
    "WorkerVersionError",
    "advise",
    "analyse",
    "messages",
    "read_capture",
    "run_scenario",
    "simulate",
]
