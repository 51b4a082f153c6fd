"""Fix how hypothesis draws, and what Ctrl-C does."""

import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ridgepass",
    deadline=None,
    derandomize=True,
    print_blob=False,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],  # that is for the machine, which may be busy
)
settings.load_profile("ridgepass")


@pytest.fixture
def ctrl_c():
    """Let SIGINT raise KeyboardInterrupt, as Python starts with, whoever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    left = signal.signal(signal.SIGINT, before)
    assert left is signal.default_int_handler
