"""A worker process of a sweep: it reads tasks from its standard input, and writes results to its standard output."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from typing import BinaryIO

from poise.batch.task import run_task


def serve(tasks: BinaryIO, results: BinaryIO) -> None:
    """Do tasks until there are no more."""
    while True:
        try:
            task = pickle.load(tasks)
        except EOFError:
            return
        try:
            pickle.dump(run_task(task), results)
            results.flush()
        except BrokenPipeError:
            return


def _end_with(parent: int) -> None:
    """End when the parent process has ended, for any reason."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    """Serve the parent process. Output of runs goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which ends its workers
    if hasattr(os, "fork"):
        threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, results)


if __name__ == "__main__":
    main()
