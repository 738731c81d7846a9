"""Environment variables: each kind is read in one way, and what cannot be read is one sentence before anything is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vit_viz
from vit_viz.cli import main
from vit_viz.errors import ParameterError
from vit_viz.session.session import Session
from vit_viz.settings import SWITCHES, setting, switch, whole_number
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.views.choices import own_hub_ids

ROOT = Path(__file__).resolve().parents[1]
ON, OFF = ["1", "true", "YES", " On\n"], ["0", "False", "no", "OFF", "\toff "]
NEITHER = ["2", "-1", "maybe", "0.0", "none", "truee", "1 0", "\uff11"]


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_on_or_off_in_any_of_the_usual_words(name: str) -> None:
    assert [switch(name, {name: text}) for text in ON] == [True] * len(ON)
    assert [switch(name, {name: text}) for text in OFF] == [False] * len(OFF)
    assert [switch(name, each) for each in ({}, {name: ""}, {name: " "})] == [SWITCHES[name]] * 3


@pytest.mark.parametrize("text", NEITHER)
def test_a_switch_that_says_neither_is_refused_by_name_and_value(text: str) -> None:
    with pytest.raises(
        ParameterError, match=rf"^VIT_VIZ_MCP is 1, true, yes or on, .* not {re.escape(repr(text))}\.$"
    ):
        switch("VIT_VIZ_MCP", {"VIT_VIZ_MCP": text})


@pytest.mark.parametrize("text", ["2GB", "-1", "0", "1.5", "4e3", "1_000", "9" * 20, "\u0663"])
def test_a_number_that_is_none_is_refused_by_name_and_value(text: str) -> None:
    with pytest.raises(ParameterError, match=rf"^NUMBER is a number of things such as 7, not {text!r}\.$"):
        whole_number("NUMBER", 7, unit="things", environment={"NUMBER": text})


def test_a_number_may_have_blanks_around_it_and_an_empty_one_is_not_set() -> None:
    for text, number in ((" 42 ", 42), ("", 7), ("  ", 7), ("9" * 19, int("9" * 19))):
        assert whole_number("NUMBER", 7, unit="things", environment={"NUMBER": text}) == number
    assert whole_number("NUMBER", 7, unit="things", environment={}) == 7
    assert setting("NAME", {"NAME": " dino-s16\n"}) == "dino-s16"


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_is_read_before_an_app_is_started(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "maybe")
    assert main(["serve"]) == 2
    assert capsys.readouterr().err.startswith(f"vit-viz: {name} is 1, true, yes or on, ")
    with pytest.raises(ParameterError, match=f"^{name} is "):
        vit_viz.serve("mini")


def test_what_a_switch_protects_is_closed_by_every_word_for_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in OFF:
        monkeypatch.setenv("VIT_VIZ_OWN_HUB_IDS", text)
        assert not own_hub_ids()
    for text in ON:
        assert Exposure.of("127.0.0.1", environment={"VIT_VIZ_BEHIND_PROXY": text}).believes_proxy
        monkeypatch.setenv("VIT_VIZ_OWN_HUB_IDS", text)
        assert own_hub_ids()


def test_the_numbers_of_a_session_are_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIT_VIZ_MAX_PATCHES", raising=False)
    assert Session(model="mini", device="cpu").max_patches == 4096
    monkeypatch.setenv("VIT_VIZ_MAX_PATCHES", " 777 ")
    assert Session(model="mini", device="cpu").max_patches == 777
    monkeypatch.setenv("VIT_VIZ_CACHE_BYTES", "2GB")
    with pytest.raises(ParameterError, match=r"^VIT_VIZ_CACHE_BYTES is a number of bytes such as 2147483648"):
        Session(model="mini", device="cpu")


def test_the_table_of_settings_has_each_one_that_the_code_reads() -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "vit_viz").rglob("*.py"))
    read = set(re.findall(r"\"(VIT_VIZ_[A-Z_]+)\"", code)) - {"VIT_VIZ_STARTED_BY"}  # a mark of our own
    rows = re.findall(r"^\| (`VIT_VIZ_.*?) \|", (ROOT / "docs/SHARING.md").read_text("utf-8"), re.MULTILINE)
    assert read == set(re.findall(r"VIT_VIZ_\w+", "".join(rows)))
    assert set(SWITCHES) < read
