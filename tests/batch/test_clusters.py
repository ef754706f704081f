"""The same sweep on real clusters of Dask and Ray, which the tests start: the same table."""

import pytest

import poise
from poise.batch import Sweep

SCENE = """
parameters: {high: 1.0}
ground: {friction: 0.5}
bodies:
  - {name: ball, position: [0, 0, $high], velocity: [1, 0, 0], shape: {kind: sphere, radius: 0.1, mass: 2}}
duration: 0.1
"""
MINE = """
def mine(world, recording):
    if world.q[2] > 90:
        raise ValueError("too high")
    return recording.q[:, 2].max()
"""


@pytest.fixture
def sweep(tmp_path):
    """Two hundred runs, of which some fail."""
    file, mine = tmp_path / "ball.yaml", tmp_path / "mine.py"
    file.write_text(SCENE)
    mine.write_text(MINE)
    settings = {"ball.mass": "1:4:10", "high": [0.1, 0.2, 1.0, 2.0, 100.0], "ground.friction": "0.2:0.8:4"}
    return Sweep(file, settings, ["energy_lost", "max_contact_force", f"{mine}:mine"])


@pytest.fixture
def dask():
    """The address of a scheduler with two workers."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def ray():
    """The address of a cluster of one node."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    yield cluster.address
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_a_cluster_gives_the_same_table(sweep, kind, request, tmp_path):
    assert len(sweep.runs) == 200
    address = request.getfixturevalue(kind)
    here = sweep.run(processes=2, folder=tmp_path / "here")
    there = sweep.run(**{kind: address}, folder=tmp_path / "there")
    assert there.csv() == here.csv()
    assert (here["status"] == "failed").sum() == 40
    # what is half done goes on anywhere
    half = tmp_path / "half"
    half.mkdir()
    lines = (tmp_path / "here" / "runs.jsonl").read_bytes().split(b"\n")
    (half / "runs.jsonl").write_bytes(b"\n".join(lines[:101]) + b"\n" + lines[101][:20])
    assert sweep.run(**{kind: address}, folder=half).csv() == here.csv()
    assert (half / "runs.jsonl").read_bytes().count(b"\n") == 201
    print(f"\n{kind}: 200 runs, the table of local processes byte for byte; 100 of them kept, 100 resumed, the same")


@pytest.mark.slow
def test_scenes_go_where_their_files_are_not(tmp_path, dask, monkeypatch):
    """Tracking too: a scene crosses to another process whole, and moves there as it does here."""
    file = tmp_path / "hero.yaml"
    file.write_text(
        "characters:\n  - name: hero\n    kind: humanoid\n    track:\n"
        "      motion: {keys_deg: {0: {elbow_l: 0}, 1: {elbow_l: 60}}}\n      root: held\n      strength: 50\n"
    )
    sweep = Sweep(file, {"hero.strength": [5, 50]}, ["peak_torque", "tracking_error"], seconds=0.05)
    here = sweep.run(processes=1)
    from poise.batch import task

    packed = task.Task.packed

    def gone(self):
        made = packed(self)
        return task.Task(made.run, made.values, made.how, "/nowhere.yaml", made.scene)

    monkeypatch.setattr(task.Task, "packed", gone)
    assert sweep.run(dask=dask).csv() == here.csv()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_a_run_that_takes_its_worker_with_it_is_told_and_the_others_are_kept(kind, request, tmp_path):
    file, mine = tmp_path / "ball.yaml", tmp_path / "mine.py"
    file.write_text(SCENE)
    mine.write_text("import os\ndef mine(world, recording):\n    return os._exit(7) if world.q[2] > 1.5 else 1\n")
    sweep = Sweep(file, {"high": [1.0, 2.0, 1.2]}, [f"{mine}:mine"])
    with pytest.raises(poise.SceneError, match="1 of 3 runs were lost; run 1: its worker ended"):
        sweep.run(**{kind: request.getfixturevalue(kind)}, folder=tmp_path / "out")
    assert (tmp_path / "out" / "runs.jsonl").read_bytes().count(b"\n") == 3


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_told(tmp_path, monkeypatch):
    """A client would wait for its futures for ever."""
    from dask import config
    from distributed import LocalCluster

    from poise.batch import clusters

    monkeypatch.setattr(clusters, "PATIENCE", 2.0)
    file, mine = tmp_path / "ball.yaml", tmp_path / "mine.py"
    file.write_text(SCENE)
    mine.write_text("import time\ndef mine(world, recording):\n    time.sleep(0.2)\n    return 1\n")
    sweep, done = Sweep(file, {"high": "1:2:50"}, [f"{mine}:mine"]), []
    with (
        config.set({"distributed.comm.timeouts.connect": "2s"}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
    ):

        def told(count, of):
            done.append(count)
            if count == 3:
                cluster.close()

        with pytest.raises(poise.SceneError, match=r"--dask .*: the scheduler of Dask has gone"):
            sweep.run(dask=cluster.scheduler_address, folder=tmp_path / "out", told=told)
    assert (tmp_path / "out" / "runs.jsonl").read_bytes().count(b"\n") == 1 + len(done)
    table = sweep.run(processes=0, folder=tmp_path / "out")
    assert table["status"].tolist() == ["ok"] * 50


def test_no_cluster_is_told(sweep, monkeypatch):
    from poise.batch import clusters

    monkeypatch.setattr(clusters, "PATIENCE", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://"):
        with pytest.raises(poise.SceneError, match=f"--dask {address}: there is no scheduler of Dask"):
            sweep.run(dask=address)


def test_addresses_that_are_none_are_told_at_once(sweep):
    """Dask would wait for a minute, and end with a traceback."""
    for address in ("nonsense", "tcp://nonsense", "host:", ":8786", "1.2.3.4:abc", "tcp://host:99999", "tls://", ""):
        with pytest.raises(poise.SceneError, match=r"must be HOST:PORT or tcp://HOST:PORT"):
            sweep.run(dask=address)


def test_no_cluster_of_ray_is_told(sweep):
    for address in ("127.0.0.1:9", "ray://127.0.0.1:9"):
        with pytest.raises(poise.SceneError, match=f"--ray {address}: there is no cluster of Ray"):
            sweep.run(ray=address)
    for address in ("nonsense", "host:", ":6379", "host:99999", ""):
        with pytest.raises(poise.SceneError, match="must be HOST:PORT, ray://HOST:PORT or auto"):
            sweep.run(ray=address)
