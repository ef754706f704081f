"""Parameter sweeps: run a scene with different values of its settings, and measure each run."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from sys import float_info
from typing import Any

from poise.batch.metrics import Metric, read_metric
from poise.batch.sources import Sources
from poise.batch.store import Store, differences
from poise.batch.sweep_values import Between, combinations, draws, read_values
from poise.batch.table import AFTER, BEFORE, Table, column
from poise.batch.task import LOST, How, Result, Task, build, length_of, versions
from poise.io.load import load, read_file
from poise.io.yaml_scene import looks_like_yaml
from poise.model.errors import SceneError
from poise.sim.progress import Progress

Start = Callable[[Iterator[Task]], Generator[Result, None, None]]
MOST_CHECKS = 32
"""Number of values of a setting that are checked before the first run; of more values, the first and the last."""
MOST_LOST = 8
"""Failed runs after which a sweep without any successful run stops: the cause is then not in the runs."""


class Sweep:
    """Runs of a scene file with different values of its parameters and fields, and metrics of each run.

    `settings` maps names of parameters, or paths of fields (`"ground.friction"`, `"hero.strength"`), to values. Values
    are a list or array, or text as on the command line: `"0.2,0.5"`, `"100:400:7"`. All combinations are run; with
    `random`, that number of random draws is run instead, and `"100:400"` is a uniform distribution. `metrics` are names
    (see `poise.batch.metrics.KNOWN`; `"hero.fall_time"` for one of several characters), `"FILE.py:FUNCTION"`, or
    functions of (world, recording). `seconds`, `dt` (s), `coordinates` are as in `poise run`; every `every`-th state is
    measured.

    A run depends only on its values: the table does not depend on the order of runs or on where they are done.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "ball.yaml"
    >>> _ = file.write_text('''
    ... ground: true
    ... bodies: [{name: ball, position: [0, 0, 1], shape: {kind: sphere, radius: 0.1}}]
    ... ''')
    >>> sweep = Sweep(file, {"ball.position.z": [1.0, 2.0]}, metrics=["fall_time"], seconds=0.5)
    >>> table = sweep.run(processes=0)
    >>> table["fall_time"].round(2).tolist(), table["status"].tolist()
    ([0.32, 0.45], ['ok', 'ok'])
    """

    def __init__(
        self,
        scene: str | os.PathLike[str],
        settings: Mapping[str, Any],
        metrics: Iterable[Any] = ("final_height",),
        *,
        seconds: float | None = None,
        dt: float | None = None,
        every: int = 1,
        coordinates: str | None = None,
        random: int | None = None,
        seed: int = 0,
    ) -> None:
        self.file, content = read_file(scene, "Sweep", "sweeps go over scenes in YAML")
        if not looks_like_yaml(self.file.name, content):
            what = "sweeps set what scenes in YAML say; take this file into one: characters: [{name: …, file: …}]"
            raise SceneError(what, file=str(self.file))
        if not isinstance(settings, Mapping):
            raise SceneError(f"must be values by name, found {settings!r:.60}", field="settings")
        self.settings = {str(name): read_values(str(name), values) for name, values in settings.items()}
        wanted = [metrics] if isinstance(metrics, str) or callable(metrics) else list(metrics)
        self.metrics: tuple[Metric, ...] = tuple(read_metric(metric) for metric in wanted)
        if not self.metrics:
            raise SceneError("there is nothing to measure; name at least one", field="metric")
        self._check_names()
        numbers = {"seconds": seconds, "dt": dt}
        for name, value in numbers.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and 0.0 < value <= float_info.max):
                raise SceneError(f"must be more than 0, found {value!r}", field=name)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise SceneError(f"must be a whole number from 1 on, found {every!r}", field="every")
        self.random, self.seed = random, seed
        self.runs = combinations(self.settings) if random is None else draws(self.settings, random, seed)
        """Values of each run."""
        self.how = How(self.metrics, seconds, dt, every, coordinates)

    def _check_names(self) -> None:
        taken: dict[str, str] = dict.fromkeys((*BEFORE, *AFTER), "the table has a column of that name itself")
        for name in self.settings:
            if name in taken:
                raise SceneError(f"{taken[name]}; call the parameter something else", field=f"set: {name}")
            taken[name] = "there is a setting of that name"
        for metric in self.metrics:
            if metric.name in taken:
                raise SceneError(f"{taken[metric.name]}", field=f"metric: {metric.name}")
            taken[metric.name] = "it is named twice; leave one out"

    # ---- before ------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check values and metrics before the first run; raises SceneError."""
        first = self.runs[0]
        scene = load(self.file, set=first)
        for name, values in self.settings.items():
            tried = values.values
            ends = isinstance(values, Between) or len(tried) > MOST_CHECKS
            for value in (tried[0], tried[-1]) if ends else tried:
                if value != first[name]:
                    load(self.file, set=first | {name: value})
        try:
            world = build(scene, self.how)
            length = min(length_of(scene, self.how), world.dt)
            parts = tuple(dict.fromkeys(part for metric in self.metrics for part in metric.record))
            recording = world.run(length, record=parts, progress=False)
            for metric in self.metrics:
                if metric.function is None and metric.source is None:
                    metric.measure(world, recording)
        except SceneError:
            raise
        except (TypeError, ValueError) as error:
            raise SceneError(str(error), file=str(self.file)) from None
        except ArithmeticError:
            return  # immediate divergence is a valid result

    def sources(self) -> Sources:
        """The files that runs use, with their present content."""
        return Sources(self.file, [value for values in self.settings.values() for value in values.values])

    def header(self, sources: Sources | None = None) -> dict[str, Any]:
        """What identifies this sweep: files, values, options, versions."""
        how, digests = self.how, (sources or self.sources()).digests
        return {
            "scene": self.file.name,
            "runs": len(self.runs),
            "files": {**digests, "(model)": load(self.file, set=self.runs[0]).compile().digest()[:16]},
            "settings": {
                name: [values.low, "to", values.high] if isinstance(values, Between) else list(values.values)
                for name, values in self.settings.items()
            },
            "options": {
                "metrics": [metric.identity() for metric in self.metrics],
                "seconds": how.seconds,
                "dt": how.dt,
                "every": how.every,
                "coordinates": how.coordinates,
                "random": self.random,
                "seed": self.seed if self.random is not None else None,
            },
            "versions": versions(),
        }

    # ---- runs --------------------------------------------------------------------------------------------------------

    def run(
        self,
        processes: int | None = None,
        *,
        folder: str | os.PathLike[str] | None = None,
        dask: str | None = None,
        ray: str | None = None,
        progress: bool | None = None,
        told: Callable[[int, int], None] | None = None,
    ) -> Table:
        """Do all runs that are not done yet, and return the table of all runs.

        Runs are done in `processes` processes (as many as there are processors if missing; 0: in this process), or on
        the cluster of `dask` or `ray` at an address. Each result is written to `folder` at once: a sweep that was
        stopped in any way continues from there when it is run again. A terminal shows a progress line; `told`, if
        given, is called with the number of finished runs and of all runs.
        """
        start = _chosen(processes, dask, ray)
        self._check_functions(here=processes == 0 and dask is None and ray is None)
        sources = self.sources()
        self.check()
        if folder is None:
            return self._table(self._collected(start, sources, {}, lambda result: None, progress, told))
        with Store(Path(folder), self.header(sources)) as store:
            done = dict(store.results)

            def keep(result: Result) -> None:
                store.add(result, self.runs[result.run])

            return self._table(self._collected(start, sources, done, keep, progress, told))

    def _check_functions(self, here: bool) -> None:
        """Functions are pickled by name; one that no module has by its name can only be called in this process."""
        for metric in self.metrics:
            function = metric.function
            lost = getattr(function, "__module__", None) == "__main__" or "<" in getattr(function, "__qualname__", "")
            if function is not None and lost and not here:
                right = f'put it into a file and name it "FILE.py:{metric.name}", or take processes=0'
                raise SceneError(f"other processes cannot find this function; {right}", field=f"metric: {metric.name}")

    def _collected(
        self,
        start: Start,
        sources: Sources,
        done: dict[int, Result],
        keep: Callable[[Result], None],
        progress: bool | None,
        told: Callable[[int, int], None] | None,
    ) -> dict[int, Result]:
        """Results of all runs."""
        left = [run for run in range(len(self.runs)) if run not in done]
        file = str(self.file.resolve())
        tasks = (Task(run, self.runs[run], self.how, file) for run in left)
        bar = Progress(len(self.runs), progress, unit="runs", first=len(done))
        lost: list[Result] = []
        before = len(done)
        if not left:
            return done
        try:
            # ends processes and disconnects from clusters, also after an error
            with closing(start(tasks)) as results:
                for result in results:
                    if result.status == LOST:
                        lost.append(result)
                        if len(lost) >= MOST_LOST and len(done) == before:
                            break
                        continue
                    self._check_result(result, sources)
                    keep(result)
                    done[result.run] = result
                    bar.tell(len(done))
                    if told is not None:
                        told(len(done), len(self.runs))
        finally:
            bar.close()
        if lost:
            some = f"{len(lost)} of {len(self.runs)} runs were lost;"
            what = f"{some if len(done) > before else 'no run could be done:'} run {lost[0].run}: {lost[0].note}"
            raise SceneError(f"{what}. The same sweep in the same folder tries them again", file=str(self.file))
        return done

    def _check_result(self, result: Result, sources: Sources) -> None:
        """Check that a run belongs to this sweep: same versions, and files unchanged since the sweep started."""
        if result.versions and result.versions != versions():
            told = "; ".join(differences(result.versions, versions()))
            raise SceneError(f"a worker has other versions than this process, and may compute other numbers: {told}")
        if changed := sources.changed():
            what = f"{', '.join(changed)} has changed since the sweep began, and runs would be of another scene"
            right = "put back what was there, and the same sweep goes on; or take another folder"
            raise SceneError(f"{what}; {right}", file=str(self.file))

    def _table(self, results: Mapping[int, Result]) -> Table:
        rows = [results[run] for run in range(len(self.runs))]
        columns = {"run": column([result.run for result in rows])}
        for name in self.settings:
            columns[name] = column([values[name] for values in self.runs])
        for metric in self.metrics:
            columns[metric.name] = column([float(result.metrics[metric.name]) for result in rows])
        columns["status"] = column([result.status for result in rows])
        columns["time"] = column([result.time for result in rows])
        columns["note"] = column([result.note for result in rows])
        labels = {metric.name: metric.label for metric in self.metrics}
        return Table(columns, list(self.settings), [metric.name for metric in self.metrics], labels)


def _chosen(processes: int | None, dask: str | None, ray: str | None) -> Start:
    """The executor of the runs; raises for missing packages and contradictory options."""
    from poise.batch import clusters, local

    if (dask is not None) + (ray is not None) + (processes is not None) > 1:
        raise SceneError("runs are done by processes here, by Dask or by Ray: name one of them")
    if dask is not None:
        clusters.check_dask()
        return lambda tasks: clusters.run_on_dask(tasks, dask)
    if ray is not None:
        clusters.check_ray()
        return lambda tasks: clusters.run_on_ray(tasks, ray)
    if processes == 0:
        return local.run_here
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = count if processes is None else processes
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 4096:
        raise SceneError(f"must be a whole number from 0 to 4096, found {processes!r}", field="processes")
    return lambda tasks: local.run_in_processes(tasks, count)
