"""The time that training took: from the first step to the last, without what lies between epochs."""

import time


class Clock:
    """Sums up stretches of time."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._since: float | None = None

    def go_on(self) -> None:
        """Count from now."""
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Count no further."""
        self._sum, self._since = self.seconds, None

    @property
    def seconds(self) -> float:
        """Counted so far."""
        return self._sum + (time.perf_counter() - self._since if self._since is not None else 0.0)
