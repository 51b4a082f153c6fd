"""ridgepass beside the tools in use today: time, memory, passes and errors on the same rows."""
