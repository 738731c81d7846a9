"""The engine "ray": what is refused without any cluster, and a survey on a cluster that loses a machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.surveys.conftest import loaded, rows_of, save_photo
from vit_viz import __version__
from vit_viz.cli import main
from vit_viz.errors import CaptureError, ParameterError, VitVizError
from vit_viz.session.edits import ModelEdits
from vit_viz.surveys import parquet, ray_engine
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.local import Machine
from vit_viz.surveys.photos import Photo, photos_in
from vit_viz.surveys.ray_engine import RayCluster
from vit_viz.surveys.recording import Recording
from vit_viz.surveys.run import engine_of, survey
from vit_viz.surveys.stages import Decoding, prepared

ROOT = Path(__file__).resolve().parents[2]


# --- which engine


def test_a_word_or_a_value_says_which_engine_runs():
    assert engine_of("local") == Machine()
    assert engine_of("ray") == RayCluster()
    assert engine_of(RayCluster("here", actors=3)) == RayCluster("here", actors=3)


def test_another_word_is_refused_before_anything_is_written(model, photos, tmp_path):
    with pytest.raises(ParameterError, match=r"The engine is 'local' or 'ray', .*, not 'spark'\."):
        survey(model, photos, tmp_path / "out", engine="spark")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actors": 0}, "actors is a whole number from 1, not 0"),
        ({"at_once": 2.5}, "at_once is a whole number from 1, not 2.5"),
        ({"gpus_per_actor": -0.5}, "a share from 0 to 1 or a whole number, not -0.5"),
        ({"gpus_per_actor": 1.5}, "a share from 0 to 1 or a whole number, not 1.5"),
    ],
)
def test_numbers_out_of_bounds_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        RayCluster(**options)


@pytest.mark.parametrize("share", [0, 0.25, 1, 2])
def test_a_share_of_a_gpu_or_whole_ones_are_fine(share):
    assert RayCluster(gpus_per_actor=share).gpus_per_actor == share


@pytest.mark.parametrize(
    ("flags", "engine"),
    [
        ([], Machine()),
        (["--at-once", "3", "--workers", "2"], Machine(3, 2)),
        (["--engine", "ray"], RayCluster()),
        (
            [
                "--engine",
                "ray",
                "--address",
                "far",
                "--actors",
                "4",
                "--gpus-per-actor",
                "0.5",
                "--at-once",
                "7",
            ],
            RayCluster("far", 4, 0.5, 7),
        ),
    ],
)
def test_the_command_line_says_which_engine_runs(monkeypatch, tmp_path, flags, engine):
    told: dict[str, Any] = {}

    def asked(_model, _photos, out, **options):
        told.update(options)
        raise VitVizError("enough")

    monkeypatch.setattr("vit_viz.surveys.run.survey", asked)
    assert main(["survey", "photos", "-o", str(tmp_path), *flags]) == 2
    assert told["engine"] == engine


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--address", "far"], "--address does nothing with --engine local."),
        (["--actors", "1"], "--actors does nothing with --engine local."),
        (["--gpus-per-actor", "0"], "--gpus-per-actor does nothing with --engine local."),
        (["--engine", "ray", "--workers", "0"], "--workers does nothing with --engine ray."),
    ],
)
def test_a_flag_of_the_other_engine_is_refused(capsys, photos, tmp_path, flags, words):
    assert main(["survey", str(photos), "-o", str(tmp_path / "out"), *flags]) == 2
    assert capsys.readouterr().err == f"vit-viz: {words}\n"


def test_without_ray_one_sentence_says_what_to_install(model, photos, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        VitVizError, match=r"^The engine 'ray' needs ray, .*: pip install 'vit_viz\[survey\]'\.$"
    ):
        survey(model, photos, tmp_path / "out", engine="ray")
    done = survey(model, photos, tmp_path / "out")  # what was begun goes on with the other engine
    assert done.num_photos == 11


# --- the stages, in this process


class ObjectStore:
    """Stands in for Ray's: what is fetched was pickled."""

    def __init__(self) -> None:
        self.content: list[bytes] = []

    def put(self, value: object) -> int:
        self.content.append(ray_engine.pickle.dumps(value))
        return len(self.content) - 1

    def get(self, reference: int) -> Any:
        return ray_engine.pickle.loads(self.content[reference])


@pytest.fixture
def outcome_of(model, monkeypatch):
    """What becomes of some photos as one batch, by the stages as a cluster runs them."""

    def run(photos: list[Photo], recording: Recording | None = None) -> Any:
        store = ObjectStore()
        monkeypatch.setitem(sys.modules, "ray", store)
        recorder = ray_engine._Recorder(ray_engine._put(store, recording or Recording(model)), False, 3)
        row = ray_engine._decode(ray_engine._row(5, photos), decoding=Decoding(model.preprocess))
        return ray_engine.pickle.loads(recorder(row)["outcome"])

    return run


def test_a_batch_has_the_bytes_that_the_local_engine_writes(outcome_of, model, photos, tmp_path):
    outcome = outcome_of(list(photos_in(photos)))
    done = survey(model, photos, tmp_path / "out", engine=Machine(at_once=3))
    assert (outcome.number, outcome.photos) == (5, 11)
    batch = done.folder / "batch=000000"
    written = {level: parquet.file_of(batch, level).read_bytes() for level in TABLES}
    assert outcome.checked() == written


def test_edits_travel_with_the_model(outcome_of, model, photos, tmp_path):
    edits = "off 1.2;temperature 2=0.5"
    done = survey(model, photos / "inside", tmp_path / "out", engine=Machine(at_once=3), edits=edits)
    recording = Recording(model, edits=ModelEdits.parse(edits))
    for _ in range(2):  # also after it was used here, as for the proof
        files = outcome_of(list(photos_in(photos / "inside")), recording).checked()
        assert files["heads"] == parquet.file_of(done.folder / "batch=000000", "heads").read_bytes()
        recording.rows(prepared(photos_in(photos / "inside"), Decoding(model.preprocess)))
    assert files["heads"] != outcome_of(list(photos_in(photos / "inside"))).checked()["heads"]


def test_photos_are_found_from_another_working_directory(outcome_of, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(photos)
    listed = photos_in("inside")
    assert not any(Path(photo.path).is_absolute() for photo in listed)
    row = ray_engine._row(0, listed)
    monkeypatch.chdir(tmp_path)
    sent = ray_engine.pickle.loads(row["photos"])
    assert [photo.path for photo in sent] == [str(photos / "inside" / photo.name) for photo in listed]


def test_a_machine_that_does_not_see_the_photos_stops_the_survey(outcome_of, tmp_path):
    photo = tmp_path / "a.png"
    outcome = outcome_of([Photo("a.png", str(photo))])  # the machine that reads has no such file
    assert set(outcome.checked()) == set(
        TABLES
    )  # here neither: a photo that is gone is a failure like any other
    save_photo(photo, 1)
    with pytest.raises(
        ParameterError, match=r"does not see .*a\.png: all machines of the cluster need the photos at"
    ):
        outcome.checked()


def test_a_machine_with_another_version_stops_the_survey(outcome_of, photos, monkeypatch):
    monkeypatch.setattr(ray_engine, "_version", lambda: "0.0.1")
    outcome = outcome_of(list(photos_in(photos / "inside")))
    monkeypatch.setattr(ray_engine, "_version", lambda: __version__)
    with pytest.raises(ParameterError, match=rf"has vit_viz 0\.0\.1, and here is {__version__}"):
        outcome.checked()


def test_a_model_that_cannot_be_recorded_ends_with_its_own_sentence(outcome_of, photos, monkeypatch):
    def refused(*_given, **_options):
        raise CaptureError("Its attention is out of sight.")

    monkeypatch.setattr("vit_viz.surveys.recording.begun_numbers", refused)
    with pytest.raises(CaptureError, match="out of sight"):
        outcome_of(list(photos_in(photos / "inside"))).checked()


def test_a_model_that_cannot_be_sent_is_refused(outcome_of, photos):
    unsendable = loaded()
    unsendable.model.forward = lambda pixels: pixels  # pickle finds no such function
    with pytest.raises(ParameterError, match="This model cannot be sent to other processes: "):
        outcome_of(list(photos_in(photos / "inside")), Recording(unsendable))


@pytest.mark.parametrize(
    ("cluster", "there", "share"),
    [
        (RayCluster(), 0, 0),
        (RayCluster(), 4, 1),
        (RayCluster(gpus_per_actor=0.5), 4, 0.5),
        (RayCluster("far", gpus_per_actor=1), 0, 1),
    ],
)
def test_an_actor_takes_the_share_of_a_gpu_that_was_asked_for(cluster, there, share):
    assert cluster._gpus(there) == share


def test_a_gpu_that_no_machine_can_bring_is_refused():
    with pytest.raises(
        ParameterError, match=r"This machine has 0 GPUs; an actor that takes 1 never starts\."
    ):
        RayCluster(gpus_per_actor=1)._gpus(0)


def test_a_host_without_a_port_has_that_of_rays_heads():
    addresses = [
        ray_engine._to_join(one)["address"] for one in ("10.0.0.5", "head:7000", "auto", "ray://head:1")
    ]
    assert addresses == ["10.0.0.5:6379", "head:7000", "auto", "ray://head:1"]


class StandIn:
    """Stands in for Ray, as far as connecting goes; its core writes to the file of stderr itself."""

    data = None

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault, self.shut_down, self.marks = fault, 0, []

    def is_initialized(self) -> bool:
        return False

    def init(self, **_options: Any) -> None:
        self.marks.append("VIT_VIZ_STARTED_BY" in os.environ)
        os.write(
            2, b"[2026-11-23 18:50:32,571 I 7 7] logging.cc:303: Set ray log level to 3\nsomething else\n"
        )
        if self.fault:
            raise self.fault

    def shutdown(self) -> None:
        self.shut_down += 1


@pytest.mark.parametrize("fault", [Exception, ConnectionError, ValueError])
@pytest.mark.parametrize("address", ["", "far"])
def test_whatever_ray_raises_at_its_start_is_one_sentence(monkeypatch, fault, address):
    ray = StandIn(fault("The current node timed out\nduring startup."))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", ray)
    said = rf"^No Ray cluster can be reached at {address or 'this machine'}: The current node timed out$"
    with pytest.raises(ParameterError, match=said), ray_engine._connected(address):
        pytest.fail("connected")
    assert ray.shut_down == 0


@pytest.mark.parametrize("address", ["", "far"])
def test_what_rays_core_says_of_its_level_is_left_out_and_all_else_stays(monkeypatch, capfd, address):
    ray = StandIn()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", ray)
    ended = []

    @contextmanager
    def ends(_leftovers):
        yield
        ended.append(ray.shut_down)

    monkeypatch.setattr(ray_engine.Leftovers, "ended", ends)
    with ray_engine._connected(address) as connected:
        assert connected is ray
        assert (ray.marks, ray.shut_down) == ([True], 0)
        os.write(2, b"while connected\n")
    assert ray.shut_down == 1
    assert ended == ([] if address else [1])  # what others started goes on
    assert capfd.readouterr().err == "something else\nwhile connected\n"


# --- a cluster

FAST = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 3,
}
"""How soon a machine that is silent counts as lost."""

NODE = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 100 * 2**20}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that computes nothing and two machines of two cores each, all of them processes here."""
    # jupyterlab brings a grammar that each of Ray's processes, by way of jsonschema, would take seconds to build
    (tmp_path / "left_out").mkdir()
    (tmp_path / "left_out" / "rfc3987_syntax.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "left_out"), str(ROOT)]))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # else a token is written to the home folder
    monkeypatch.setenv("RAY_worker_niceness", "0")  # else whatever else runs here comes first
    for name, value in (ray_engine._SETTINGS | ray_engine._ONLY_HERE).items():
        monkeypatch.setenv(name, value)
    # only now, as Ray reads its settings when it is imported
    pytest.importorskip("ray", reason="ray is not installed; requirements-dev.txt has it")
    from ray.cluster_utils import Cluster

    process = psutil.Process()
    before = set(process.children(recursive=True))
    started = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0, "_system_config": FAST})
    try:
        for _ in range(2):
            started.add_node(**NODE, num_cpus=2)
        yield started
    finally:
        processes = set(process.children(recursive=True)) - before
        started.shutdown()
        assert psutil.wait_procs(processes, timeout=60)[1] == []


def with_an_actor(cluster: Any) -> Any:
    """The machine on which an actor lives."""
    from ray._private.state import actors

    places = {one["Address"]["NodeID"] for one in actors().values() if one["State"] == "ALIVE"}
    return next(node for node in cluster.worker_nodes if node.node_id in places)


@pytest.mark.slow  # starts a cluster
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")  # Ray warns of its own settings
def test_a_cluster_that_loses_a_machine_writes_what_the_local_engine_writes(model, tmp_path, cluster):
    for seed in range(36):
        save_photo(tmp_path / "photos" / f"{seed:02}.png", seed)
    (tmp_path / "photos" / "99.png").write_bytes(b"no picture")
    given = {"batch": 2, "methods": ("rollout",)}
    here = survey(model, tmp_path / "photos", tmp_path / "here", engine=Machine(at_once=2), **given)
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 2:  # the first batch is there
            cluster.remove_node(with_an_actor(cluster), allow_graceful=False)

    engine = RayCluster(cluster.address, actors=2, at_once=2)
    there = survey(model, tmp_path / "photos", tmp_path / "there", engine=engine, progress=progress, **given)
    assert len(cluster.worker_nodes) == 1
    assert told[0] == (0, 37)
    assert told[-1] == (37, 37)
    assert parquet.batches(there.folder) == parquet.batches(here.folder)
    assert rows_of(there) == rows_of(here)
