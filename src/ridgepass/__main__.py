"""``python -m ridgepass`` is the same as ``ridgepass``."""

from ridgepass.cli import main

if __name__ == "__main__":
    main()
