"""One machine's share of a survey: how much at once, what is decoded ahead, and that nothing goes on when it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.waiting import until
from vit_viz.errors import ParameterError
from vit_viz.surveys import local
from vit_viz.surveys.local import Machine, as_count
from vit_viz.surveys.photos import Photo

PHOTOS = tuple(Photo(f"{i}.png", "") for i in range(11))
DECODING: Any = None  # what decodes in these tests does not ask how
CPU, GPU = torch.device("cpu"), torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("cores", "workers"), [(None, 1), (1, 1), (2, 1), (3, 2), (16, 15), (17, 16), (96, 16)]
)
def test_a_gpu_is_fed_by_all_cores_but_one_up_to_16(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, workers: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert Machine().on(GPU) == (64, workers)
    assert Machine().on(CPU) == (8, 0)


@pytest.mark.parametrize("device", [CPU, GPU])
def test_what_is_asked_for_goes_before_what_is_usual(device: torch.device) -> None:
    assert Machine(at_once=3, workers=0).on(device) == (3, 0)
    assert Machine(at_once=1, workers=5).on(device) == (1, 5)


@pytest.mark.parametrize("value", [True, "3", 3.0, None])
def test_a_count_is_a_whole_number_and_nothing_like_one(value: object) -> None:
    with pytest.raises(ParameterError) as refused:
        as_count("batch", value, least=0)
    assert str(refused.value) == f"batch is a whole number from 0, not {value!r}."


def test_a_count_may_be_the_least_and_no_less() -> None:
    assert (as_count("batch", 1), as_count("batch", 0, least=0)) == (1, 0)
    with pytest.raises(ParameterError, match=r"^batch is a whole number from 1, not 0\.$"):
        as_count("batch", 0)


@pytest.mark.parametrize(
    ("count", "size", "sizes"), [(11, 4, [4, 4, 3]), (8, 4, [4, 4]), (3, 4, [3]), (4, 4, [4]), (2, 1, [1, 1])]
)
def test_a_batch_goes_through_the_model_in_pieces_the_last_of_which_is_known(
    count: int, size: int, sizes: list[int]
) -> None:
    pieces = list(local._pieces(7, PHOTOS[:count], size))
    assert [len(photos) for _, photos in pieces] == sizes
    assert [photo for _, photos in pieces for photo in photos] == list(PHOTOS[:count])
    assert [key for key, _ in pieces] == [(7, False)] * (len(sizes) - 1) + [(7, True)]


# --- decoded ahead


class Decoder:
    """Stands in for what reads photos; from the second piece on it waits until it may."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may = threading.Event()

    def __call__(self, photos: tuple[Photo, ...], *, decoding: Any) -> list[str]:
        assert decoding is DECODING
        self.begun.append(photos[0].name)
        if len(self.begun) > 1:
            assert self.may.wait(60)
        return [photo.name for photo in photos]


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> Decoder:
    one = Decoder()
    monkeypatch.setattr(local, "prepared", one)
    return one


def pieces_of(drawn: list[int]) -> Iterator[tuple[tuple[int, bool], tuple[Photo, ...]]]:
    """Ten pieces of a photo each; `drawn` tells which were asked for."""
    for number in range(10):
        drawn.append(number)
        yield (number, True), PHOTOS[number : number + 1]


def test_pieces_come_in_their_order_and_few_are_asked_for_ahead(decoder: Decoder) -> None:
    drawn: list[int] = []
    decoder.may.set()
    ahead = local.prepared_ahead(pieces_of(drawn), DECODING, 0)
    for number in range(10):
        assert next(ahead) == ((number, True), [f"{number}.png"])
        assert len(drawn) == min(10, number + 3)
    assert next(ahead, None) is None


def test_no_photo_is_decoded_once_nobody_wants_it_and_none_is_left_running(decoder: Decoder) -> None:
    ahead: Any = local.prepared_ahead(pieces_of([]), DECODING, 0)
    next(ahead)
    until(lambda: len(decoder.begun) == 2)
    ending = threading.Thread(target=ahead.close)
    ending.start()
    ending.join(0.2)
    assert ending.is_alive()  # it waits for the piece that is being read
    decoder.may.set()
    ending.join(60)
    assert decoder.begun == ["0.png", "1.png"]  # the third had been handed in, and was never read
    assert not [one for one in threading.enumerate() if one.name.startswith("decoder")]


def test_a_fault_of_decoding_ends_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_photos: object, *, decoding: object) -> None:
        raise MemoryError(f"no room for {decoding}")

    monkeypatch.setattr(local, "prepared", broken)
    with pytest.raises(MemoryError, match="no room for None"):
        list(local.prepared_ahead(pieces_of([]), DECODING, 0))
    assert not [one for one in threading.enumerate() if one.name.startswith("decoder")]


# --- rows beside the model
