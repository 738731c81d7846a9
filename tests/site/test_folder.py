"""The files of a site: named by what they hold, nothing of others, nothing left of a site before; and a page in one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from vit_viz import samples
from vit_viz.browser import as_stored
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import ExportError, ParameterError
from vit_viz.site import stored, write_site
from vit_viz.site.file import engine_page
from vit_viz.site.folder import LISTING

EVIL = "</script><img src=x onerror=alert(1)>\"'@@facts@@<!--"


@pytest.fixture(scope="module")
def mini() -> LoadedModel:
    return load("mini", device="cpu")


@pytest.fixture(scope="module")
def site(mini: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_site([mini], folder)
    return folder


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What storage changes is measured over all samples; a test of files does not wait for it."""
    monkeypatch.setattr(stored, "storage_error", lambda *_: (0.01, 0.01, 7))


def facts_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="vt-facts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    facts: dict[str, Any] = json.loads(found[1])
    return facts


def test_every_file_but_three_is_named_by_a_digest_of_what_it_holds(site: Path) -> None:
    plain = {"index.html", "offline.js", "README.md", LISTING}
    names = {path.name for path in site.iterdir()}
    assert set(json.loads((site / LISTING).read_text())) == names > plain
    for name in names - plain:
        digest = hashlib.sha256((site / name).read_bytes()).hexdigest()[:16]
        assert f"-{digest}." in name


def test_the_page_names_its_files_and_no_other_address(site: Path) -> None:
    page = (site / "index.html").read_text()
    facts = facts_of(page)
    named = set(re.findall(r'(?:src|href)="([^"]+)"', page)) - {"data:,"}
    named |= {one["file"] for key in ("models", "pictures") for one in facts[key]}
    page_facts = json.loads(str(facts["page"]))
    named |= {page_facts["questions"], page_facts["parts"][-1]["props"]["listing"]}
    named |= {str(facts["worker"]), str(facts["helper"])}
    assert named == {path.name for path in site.iterdir()} - {
        "index.html",
        "offline.js",
        "README.md",
        LISTING,
    }
    assert re.findall(r"https?://", page) == []


def test_the_head_starts_the_engine_with_the_first_model_by_a_script_that_the_policy_names(
    site: Path,
) -> None:
    page = (site / "index.html").read_text()
    facts, (early,) = facts_of(page), re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert f'new Worker("{facts["worker"]}")' in early
    assert json.dumps({"packed": facts["models"][0]["file"], "bytes": facts["models"][0]["bytes"]}) in early
    digest = base64.b64encode(hashlib.sha256(early.encode()).digest()).decode()
    assert f"script-src 'self' 'wasm-unsafe-eval' 'sha256-{digest}';" in page


def test_the_service_worker_keeps_all_that_the_page_names(site: Path) -> None:
    said = (site / "offline.js").read_text().splitlines()[0]
    kept = json.loads(said.removeprefix("self.vitVizSite = ").removesuffix(";"))
    names = {path.name for path in site.iterdir()} - {"index.html", "offline.js", "README.md", LISTING}
    assert {*kept["start"], *kept["later"]} == names
    assert not set(kept["start"]) & set(kept["later"])


def over_the_wire(folder: Path) -> int:
    return sum(len(gzip.compress(path.read_bytes())) for path in folder.iterdir())


@pytest.mark.usefixtures("unmeasured")
def test_a_site_is_small_and_replaces_the_one_before_and_nothing_else(
    mini: LoadedModel, tmp_path: Path
) -> None:
    write_site([mini], tmp_path, storage="fp16")
    before = {path.name for path in tmp_path.iterdir()}
    assert over_the_wire(tmp_path) <= 5.9e6
    (tmp_path / "CNAME").write_text("mine")
    assert write_site([mini], tmp_path, storage="int8") <= 4.4e6
    after = {path.name for path in tmp_path.iterdir()}
    assert over_the_wire(tmp_path) <= 3.4e6
    assert len([name for name in after if name.endswith(".bin")]) == 1
    assert len(after) == len(before) + 1
    assert "CNAME" in after


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("listing", [None, "no JSON", '["../other.txt", "CNAME"]'])
def test_a_folder_that_holds_something_else_stays_as_it_is(
    mini: LoadedModel, tmp_path: Path, listing: str | None
) -> None:
    (tmp_path / "other.txt").write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    if listing is not None:
        (folder / LISTING).write_text(listing)
    if listing is None or not listing.startswith("["):
        with pytest.raises(
            ExportError, match="holds something that is not a site of vit_viz; please choose another"
        ):
            write_site([mini], folder)
        assert not (folder / "index.html").exists()
    else:
        write_site([mini], folder)  # a listing never reaches beyond its folder
    assert (tmp_path / "other.txt").read_text() == (folder / "mine.txt").read_text() == "mine"


@pytest.mark.usefixtures("unmeasured")
def test_models_have_names_of_their_own(mini: LoadedModel, tmp_path: Path) -> None:
    for models in ([], [mini, mini]):
        with pytest.raises(ParameterError, match="one model or more, each with a name of its own"):
            write_site(models, tmp_path / "site")
    write_site([mini, replace(mini, name="org/other model")], tmp_path / "site")
    named = [path.name for path in (tmp_path / "site").iterdir() if path.suffix == ".bin"]
    assert sorted(name.split("-")[0] for name in named) == ["mini", "org_other_model"]


@pytest.mark.usefixtures("unmeasured")
def test_a_name_stays_text(mini: LoadedModel, tmp_path: Path) -> None:
    write_site([replace(mini, name=EVIL)], tmp_path)
    for page in (
        (tmp_path / "index.html").read_text(),
        engine_page(mini, samples.sample("shapes"), name=EVIL).decode(),
    ):
        assert EVIL not in unescape(re.sub(r'id="vt-facts">.*?</script>', "", page, flags=re.DOTALL))
        assert EVIL in json.dumps(facts_of(page), ensure_ascii=False).replace('\\"', '"')


def test_the_weights_are_those_that_were_measured(mini: LoadedModel, site: Path, tmp_path: Path) -> None:
    (packed,) = site.glob("*.bin")
    file = tmp_path / "weights.safetensors"
    file.write_bytes(zlib.decompress(packed.read_bytes()))
    rounded = as_stored(mini, "int8").model.state_dict()
    with safe_open(file, "pt") as weights:
        for name, expected in rounded.items():
            values = weights.get_tensor(name).float()
            if f"{name}.scale" in weights.keys():  # noqa: SIM118 # it is no mapping
                values = (values.flatten(1) * weights.get_tensor(f"{name}.scale")[:, None]).reshape(
                    values.shape
                )
            assert torch.equal(values, expected)


def test_the_page_says_what_storage_changes(mini: LoadedModel, site: Path) -> None:
    rows, shares, same = stored.storage_error(mini, "int8")
    assert 0.001 < rows < 0.2
    assert 0 < shares < 0.05
    assert same == len(samples.sample_names())
    assert stored.storage_error(mini, "fp16") == (0, 0, same)  # mini's weights are fp16 themselves
    (model,) = facts_of((site / "index.html").read_text())["models"]
    assert f"at most {100 * rows:.2g}% of the largest of their row" in model["storage"]


@pytest.mark.usefixtures("unmeasured")
def test_a_page_in_one_file_may_load_nothing(mini: LoadedModel) -> None:
    page = engine_page(mini, samples.sample("twins"), name="twins", mode="crop").decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "data:"
    assert rules["worker-src"] == "blob:"
    assert "'self'" not in policy[1]
    assert not re.search(
        r'(?:src|href)="(?!data:)', re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    )
    assert {"crop"} == {one["default"] for one in facts_of(page)["fields"] if one["name"] == "mode"}
