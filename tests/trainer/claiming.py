"""A program for ranks: the trainer, whose ranks claim the last fifth of every step, in pieces of two rows at least."""

import os

from trainer.__main__ import main
from trainer.balancing.claims import ClaimPlanner


def always_claim() -> None:
    """Have ranks claim from the first step on, whatever it costs."""
    begin = ClaimPlanner.__init__

    def made(self: ClaimPlanner, *, enabled: bool = True) -> None:
        begin(self, enabled=enabled)
        self._pool, self._smallest = 0.2, 2.0

    ClaimPlanner.__init__ = made
    ClaimPlanner._adjust = lambda *_, **__: None


if __name__ == "__main__":
    always_claim()
    status = main()
    if status:
        os._exit(status)
