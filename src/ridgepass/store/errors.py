"""The one error for files that cannot be read."""


class FormatError(ValueError):
    """A file is not a model, is damaged, or comes from a newer ridgepass; it says which."""
