"""What holds for all tests."""

import signal

from hypothesis import HealthCheck, settings

# A shell has its background jobs ignore SIGINT, and they hand that on: what a test starts could not be interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, and nothing of what is tested. What examples share of a
# fixture is a folder or a patch, which each of them uses anew.
settings.register_profile(
    "without a clock",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("without a clock")
