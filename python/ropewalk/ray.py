"""Ray as an executor: `scenario.run(executor=RayExecutor())`. Needs `pip install ropewalk[ray]`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    """Each call is a Ray task, on the cluster of `ray.init`. Ray restarts a task if its node dies.

    `num_cpus` are the processors that a task takes (as many as `jobs` of `Scenario.run`); other keywords are those of
    Ray's `options`, such as `resources` or `max_retries`.
    """

    def __init__(self, *, num_cpus: float = 1, **options: Any) -> None:
        self._options = {"num_cpus": num_cpus, **options}
        self._references: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit `fn` as a task."""
        reference = ray.remote(_call).options(**self._options).remote(fn, args, kwargs)
        future: Future[Any] = reference.future()
        self._references[future] = reference
        future.add_done_callback(lambda done: self._references.pop(done, None))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel unfinished tasks with `cancel_futures`; wait for the rest with `wait`. The cluster keeps running."""
        references = list(self._references.values())
        if cancel_futures:
            for reference in references:
                ray.cancel(reference)
        if wait and references:
            ray.wait(references, num_returns=len(references))


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
