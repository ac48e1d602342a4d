"""What holds for all tests."""

import signal

# A shell has its background jobs ignore SIGINT, and they hand that on: what a test starts could not be interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)
