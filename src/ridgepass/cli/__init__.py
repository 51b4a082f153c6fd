"""The command line: ``ridgepass fit | predict | merge | inspect | demo``."""

import signal
import sys
from collections.abc import Sequence


def main(tokens: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    try:
        from ridgepass.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        sys.stderr.write(
            f"ridgepass: the command line needs {error.name}: pip install 'ridgepass[cli]'\n"
        )
        sys.exit(2)
    code = run(sys.argv[1:] if tokens is None else tokens)
    # The exit code is settled: Ctrl-C while Python ends must not replace it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)
