"""Batches of rows from files, data frames and streams, for models that learn a batch at a time."""

from ridgepass.data.batches import Batch, Batches, batches

__all__ = ["Batch", "Batches", "batches"]
