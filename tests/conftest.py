"""Make `tests/` importable from every test folder, and fix how hypothesis draws."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "ridgepass", deadline=None, derandomize=True, print_blob=False, max_examples=60
)
settings.load_profile("ridgepass")
