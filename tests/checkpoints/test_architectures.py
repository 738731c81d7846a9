"""timm's whole zoo of Vision Transformers, as the benchmark script counts it."""

from __future__ import annotations

import pytest

pytest.importorskip("timm", reason="timm is the oracle of these tests")

from benchmarks.architectures import architectures, check


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_plain_vits_of_timm_load_with_parity_and_the_rest_is_refused_by_name() -> None:
    outcomes = [check(module, name) for module, name in architectures()]
    assert [outcome for outcome in outcomes if outcome.result == "fails"] == []
    vits = [outcome.result for outcome in outcomes if outcome.module == "vision_transformer"]
    assert vits.count("loads") >= 150
    refused = [outcome for outcome in outcomes if outcome.result == "refused"]
    assert [outcome for outcome in refused if not outcome.detail.startswith(f"{outcome.name!r} is ")] == []
    assert {outcome.result for outcome in outcomes if outcome.module == "eva"} == {"loads"}


@pytest.mark.parametrize("name", ["vit_base_patch16_siglip_224", "vit_small_patch16_18x2_224"])
def test_the_script_tells_loading_from_refusal(name: str) -> None:
    assert check("vision_transformer", name).result == ("refused" if "18x2" in name else "loads")
