"""How large a download would be, before anything of it is fetched."""

from __future__ import annotations

import pytest

from tests.checkpoints.fake_hub import COMMIT, REPO, Hub, weights
from vit_viz.checkpoints.source import announced_bytes
from vit_viz.errors import CheckpointError


def test_the_size_of_the_weights_is_asked_and_nothing_is_fetched(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.offer()
    assert announced_bytes(REPO) == len(weights())
    assert announced_bytes(f"{REPO}@{COMMIT}") == len(weights())
    assert not hub.fetched()
    assert {token for _, _, token in hub.asked} == {None}  # a visitor's question is not the owner's


def test_a_size_that_the_hub_does_not_say_is_none(hub: Hub) -> None:
    hub.offer()
    hub.fault["unsized"] = True
    assert announced_bytes(REPO) is None


@pytest.mark.parametrize(
    ("repo", "size", "message"),
    [
        ("someone/nothing", None, "The Hub has no model 'someone/nothing'"),
        (REPO, 10**12, "too large to be opened here"),
    ],
)
def test_what_could_not_be_opened_is_refused_before_it_is_asked_for(
    hub: Hub, repo: str, size: int | None, message: str
) -> None:
    hub.offer()
    hub.fault["sizes"] = {"model.safetensors": size}
    with pytest.raises(CheckpointError, match=message):
        announced_bytes(repo)
    assert not hub.fetched()
