"""When a process that died is started again: not for ever, because one that fails whenever it starts does nothing."""

RESTARTS = 3
"""How often a process is started again that has made no progress since its last death."""


class Restarts:
    def __init__(self) -> None:
        self._deaths, self._progress = 0, -1

    def again(self, progress: int) -> bool:
        """Whether it is started again after another death, `progress` being how far it has come in all."""
        self._deaths = 1 if progress > self._progress else self._deaths + 1
        self._progress = progress
        return not self.exhausted

    @property
    def exhausted(self) -> bool:
        return self._deaths > RESTARTS
