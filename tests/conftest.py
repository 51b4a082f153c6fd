"""Fix how hypothesis draws."""

from hypothesis import settings

settings.register_profile(
    "ridgepass", deadline=None, derandomize=True, print_blob=False, max_examples=60
)
settings.load_profile("ridgepass")
