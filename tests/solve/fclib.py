"""Problems of FCLIB's format, which benchmarks read as well: see `benchmarks/_fclib.py`."""

from _fclib import FOLDER, column_of_boxes, read_matrix, read_problem, relative_residual

__all__ = ["FOLDER", "column_of_boxes", "read_matrix", "read_problem", "relative_residual"]
