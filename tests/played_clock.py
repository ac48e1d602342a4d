"""Clock that a test moves by hand, so that measurements do not depend on the load of the machine."""


class PlayedClock:
    """Replacement of the module `time`. Only sleeping advances it."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        """Return the simulated seconds so far."""
        return self.now

    monotonic = perf_counter

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        assert seconds >= 0
        self.now += seconds
