"""From batches of any size to blocks of a fixed number of rows, centred, weighted and scaled."""

from ridgepass.intake.base import Batch, Intake
from ridgepass.intake.dense import DenseIntake
from ridgepass.intake.sparse import SparseIntake

__all__ = ["Batch", "DenseIntake", "Intake", "SparseIntake"]
