"""An executor of Ray, which has an interface of its own."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable


class RayExecutor:
    """Runs tasks on Ray: ``study.run(lab.RayExecutor())``, after ``ray.init(…)``. Ray is imported when one is made, and is
    no dependency of the package.

    Parameters
    ----------
    **options : object
        Options of ``ray.remote`` for every task, such as ``num_cpus=1`` or ``resources={"lab": 1}``. ``max_retries`` is 0 unless
        given: `Study.run` tries lost runs again one by one, where Ray would repeat a whole task.

    Raises
    ------
    ImportError
        Ray is not installed.
    """

    def __init__(self, **options: Any) -> None:
        try:
            ray = importlib.import_module("ray")
        except ImportError as error:
            raise ImportError("ray is not installed: pip install ray") from error
        # A function is made remote once: Ray sends each of them to its workers.
        self._remote: Callable[..., Any] = functools.cache(ray.remote(**{"max_retries": 0, **options}))

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Has a worker of Ray call a function.

        Parameters
        ----------
        fn : callable
            The function, which can be pickled.
        *args : object
            Its arguments.

        Returns
        -------
        concurrent.futures.Future
            Its result. It raises ``ray.exceptions.WorkerCrashedError`` if the worker was lost.
        """
        return self._remote(fn).remote(*args).future()
