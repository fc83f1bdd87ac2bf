"""Ask commands for windows in their order, several at once, before what they print is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event

from flows.config import Config, SourceConfig
from flows.manifest import FAILED, Pull
from flows.pulling import MAX_FAILURES, pull
from flows.secret_values import Secrets
from flows.windows import Window

_READY_FOR_EACH = 4
"""Windows that are asked for ahead, for each command that may run at once: what they print waits on the disk to be read."""

Key = tuple[str, Window]


class PullAhead:
    """Commands under way. `stop` ends those that still run.

    Args:
        config: the configuration.
        max_active: how many commands run at once.
        secrets: returns the value of a secret that the environment does not hold.
    """

    def __init__(self, config: Config, max_active: int, secrets: Secrets | None = None) -> None:
        self._config, self._max_active, self._secrets = config, max_active, secrets
        self._sources = {s.name: s for s in config.sources}
        self._waiting: list[Key] = []
        self._futures: dict[Key, Future[Pull]] = {}
        self._failures: Counter[str] = Counter()
        self._counted: set[Key] = set()
        self._stop = Event()
        self._workers = ThreadPoolExecutor(max_active, "pull")

    def want(self, keys: Sequence[Key]) -> None:
        """Say which windows will be needed, in order; those asked for already are not asked for again."""
        self._waiting = [k for k in keys if k not in self._futures]
        self._fill()

    def is_ready(self, key: Key) -> bool:
        """Tell whether `take` returns at once."""
        self._fill()
        future = self._futures.get(key)
        return future.done() if future else self._is_given_up(key)

    def wait(self, key: Key) -> None:
        """Wait until `take` returns at once."""
        while not self.is_ready(key):
            future = self._futures.get(key)
            running = [f for f in self._futures.values() if not f.done()]
            wait([future] if future else running, timeout=1.0, return_when=FIRST_COMPLETED)

    def take(self, key: Key) -> Pull | None:
        """Return what became of a window; None = it was not asked for, since its source failed too often in a row.

        Raises:
            OSError: the data folder cannot be written, or the disk is full.
        """
        self.wait(key)
        future = self._futures.pop(key, None)
        self._fill()
        return future.result() if future else None

    def stop(self) -> None:
        """End all commands that still run."""
        self._stop.set()
        self._workers.shutdown(cancel_futures=True)

    def _fill(self) -> None:
        """Start as many commands as may run."""
        self._count()
        while self._waiting and self._has_room():
            source, window = key = self._waiting.pop(0)
            if not self._is_given_up(key):
                self._futures[key] = self._workers.submit(self._pull, self._sources[source], window)

    def _has_room(self) -> bool:
        running = sum(not f.done() for f in self._futures.values())
        return running < self._max_active and len(self._futures) < self._max_active * _READY_FOR_EACH

    def _pull(self, source: SourceConfig, window: Window) -> Pull:
        return pull(self._config, source, window, secrets=self._secrets, stop=self._stop)

    def _count(self) -> None:
        """Count each source's failures in a row, in the order in which windows were asked for."""
        for key, future in self._futures.items():
            if future.done() and key not in self._counted and future.exception() is None:
                self._counted.add(key)
                self._failures[key[0]] = self._failures[key[0]] + 1 if future.result().status == FAILED else 0

    def _is_given_up(self, key: Key) -> bool:
        return self._failures[key[0]] >= MAX_FAILURES
