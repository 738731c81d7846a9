"""A survey by Ray Data: how the batches go through it, without any cluster."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.surveys.conftest import rows_of
from vit_viz.errors import Cancelled, VitVizError
from vit_viz.surveys import parquet, ray_engine
from vit_viz.surveys.local import Machine
from vit_viz.surveys.ray_engine import RayCluster
from vit_viz.surveys.recording import Recording
from vit_viz.surveys.run import survey
from vit_viz.surveys.stages import Decoding


class RayData:
    """Stands in for Ray as a whole, and for its data sets: all runs here, a row at a time, and what was asked for is noted."""

    class exceptions:  # noqa: N801 - Ray's name
        RayError = ConnectionError

    def __init__(self, gpus: int = 0) -> None:
        self.store: list[bytes] = []
        self.data, self.DataContext = self, self
        self.resources = {"CPU": 3.0} | ({"GPU": float(gpus)} if gpus else {})
        self.enable_progress_bars = self.print_on_execution_start = True
        self.stages: list[dict[str, Any]] = []
        self.rows: Iterator[dict[str, Any]] = iter(())
        self.fault: Exception | None = None

    def put(self, value: object) -> int:
        self.store.append(pickle.dumps(value))
        return len(self.store) - 1

    def get(self, reference: int) -> Any:
        return pickle.loads(self.store[reference])

    def is_initialized(self) -> bool:
        return True

    def get_current(self) -> RayData:
        return self

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def ActorPoolStrategy(self, *, min_size: int, max_size: int | None) -> tuple[int, int | None]:  # noqa: N802 - Ray's name
        return min_size, max_size

    def from_items(self, rows: list[dict[str, Any]], *, override_num_blocks: int) -> RayData:
        assert override_num_blocks == len(rows)
        self.rows = iter(rows)
        return self

    def map(self, work: Any, *, num_cpus: int, **options: Any) -> RayData:
        self.stages.append({"num_cpus": num_cpus, **options})
        made = work(*options["fn_constructor_args"]) if isinstance(work, type) else work
        self.rows = map(partial(made, **options.get("fn_kwargs", {})), self.rows)
        return self

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        assert not self.enable_progress_bars
        assert not self.print_on_execution_start
        assert logging.getLogger("ray.data").level == logging.CRITICAL
        for row in self.rows:
            yield row
            if self.fault:
                raise self.fault


@pytest.fixture
def ray_data(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RayData]:
    def make(gpus: int = 0) -> RayData:
        made = RayData(gpus)
        monkeypatch.setitem(sys.modules, "ray", made)
        monkeypatch.setitem(sys.modules, "ray.data", made)
        return made

    return make


def test_what_ray_makes_of_the_batches_is_what_the_local_engine_makes(
    model, photos, tmp_path, ray_data, monkeypatch
):
    ray, told, logger = ray_data(), [], logging.getLogger("ray.data")
    monkeypatch.setattr(logger, "level", logging.INFO)
    here = survey(model, photos, tmp_path / "here", batch=4, engine=Machine(at_once=2))
    engine = RayCluster(actors=3, at_once=2)
    there = survey(
        model, photos, tmp_path / "there", batch=4, engine=engine, progress=lambda *one: told.append(one)
    )
    assert rows_of(there) == rows_of(here)
    assert told == [(0, 11), (4, 11), (8, 11), (11, 11)]
    reading, recording = ray.stages
    assert reading["num_cpus"] == recording["num_cpus"] == 1
    assert (recording["compute"], recording["num_gpus"]) == ((1, 3), 0)
    assert recording["fn_constructor_args"][1:] == (False, 2)
    assert (ray.enable_progress_bars, ray.print_on_execution_start, logger.level) == (
        True,
        True,
        logging.INFO,
    )


@pytest.mark.parametrize(("gpus", "share"), [(1, 1.0), (4, 1.0)])
def test_an_actor_computes_on_the_gpus_that_the_cluster_has(model, ray_data, gpus, share):
    ray = ray_data(gpus)
    assert list(RayCluster()._outcomes(ray, [], Decoding(model.preprocess), Recording(model))) == []
    assert ray.stages[1]["num_gpus"] == share
    assert ray.stages[1]["fn_constructor_args"][1:] == (True, None)


def test_a_cluster_that_gives_up_is_one_sentence_and_whole_batches_stay(model, photos, tmp_path, ray_data):
    ray = ray_data()
    ray.fault = ConnectionError("Traceback\n  somewhere\nOut of disk.\n")
    with pytest.raises(VitVizError, match=r"^The Ray cluster gave up: Out of disk\.$"):
        survey(model, photos, tmp_path / "out", batch=4, engine="ray")
    assert parquet.batches(tmp_path / "out") == {0}


def test_a_survey_on_a_cluster_stops_between_batches(model, photos, tmp_path, ray_data):
    ray_data()
    with pytest.raises(Cancelled):
        survey(
            model, photos, tmp_path / "out", batch=4, engine="ray",
            cancelled=lambda: 1 in parquet.batches(tmp_path / "out"),
        )  # fmt: skip
    assert parquet.batches(tmp_path / "out") == {0, 1}
    with pytest.raises(Cancelled):
        survey(model, photos, tmp_path / "out", batch=4, engine="ray", cancelled=lambda: True)
    assert parquet.batches(tmp_path / "out") == {0, 1}


@pytest.mark.parametrize(("cores", "cpus"), [(None, 2), (1, 2), (2, 2), (8, 8)])
def test_a_cluster_of_this_machine_has_room_for_a_task_and_an_actor(cores, cpus, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert ray_engine._to_start() == {"address": "local", "num_cpus": cpus, "include_dashboard": False}
