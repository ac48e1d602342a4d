"""A clock that a test moves by hand: what is measured by it does not depend on how busy the machine is."""


class PlayedClock:
    """Stands in for the module `time`. Sleeping moves it, and nothing else does."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        """The seconds that were played so far."""
        return self.now

    monotonic = perf_counter

    def sleep(self, seconds: float) -> None:
        """Move the clock."""
        assert seconds >= 0
        self.now += seconds
