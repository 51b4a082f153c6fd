"""What this process has needed."""

import sys
from pathlib import Path


def peak_memory() -> int:
    """Return the most memory this process ever had, in bytes.

    Linux counts what the process that started this one had into ``ru_maxrss``, but not here.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return next(
            int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")
        )
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
