"""What workers of an executor call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from .. import _rexmit

VERSION = _rexmit.__version__

#: A run: the key of its result, and its document.
Task = tuple[str, str]
#: A result: its key, and the file for the store or the kind and the text of a failure.
Done = tuple[str, Optional[bytes], Optional[tuple[str, str]]]


@dataclass(frozen=True)
class Refusal:
    """Why a worker runs nothing. It is returned, as executors wrap exceptions in their own."""

    text: str


def module_file() -> str:
    """The file of the extension module, whose digest identifies the program that has computed a result."""
    return str(_rexmit.__file__)


def execute(version: str, program: str, tasks: list[Task]) -> Union[list[Done], Refusal]:
    """Executes runs that rexmit `version`, the extension module of the digest `program`, has planned."""
    if version != VERSION:
        return Refusal(
            f"a worker has rexmit {VERSION}, and the runs were planned by rexmit {version}: install the same version on both"
        )
    own = _rexmit.program(module_file())
    if own != program:
        return Refusal(
            f"a worker has another build of rexmit {VERSION} ({own[:12]}) than the one that planned the runs ({program[:12]}): "
            "install the same wheel on both"
        )
    return [(key, *_rexmit.execute_run(document, module_file())) for key, document in tasks]
