"""The wheel, built from the sdist and installed where there is no checkout: imports, traces, proves, and serves the page.

Installing torch anew takes minutes and a network, so the environment is empty but for a `.pth` file that lends it the libraries of
the one that runs the tests; the wheel goes in with `--no-deps --no-index`, and what is imported is shown to lie there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

import vit_viz
from tests.serving import free_port, wait_for
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 8 * 2**20 + 3_000_000  # which a bundled model of sentences may take
EXAMPLE = {
    path.relative_to(ROOT / "assets").as_posix()
    for path in (ROOT / "assets" / "example").rglob("*")
    if path.is_file()
}
BUNDLED = {
    f"vit_viz/assets/{name}"
    for name in {"README.md", "imagenet1k.tsv", "mini.safetensors", "mini-clip.safetensors", "words.txt"}
    | EXAMPLE
}

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Place:
    """An environment with the wheel, and an empty folder to start from."""

    python: Path
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return kept | {"HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False", "BROWSER": "true"}

    def run(self, program: str, *arguments: str, fails: int = 0) -> subprocess.CompletedProcess[str]:
        """A program of the environment, run from the empty folder."""
        command = [self.python.parent / program, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True)
        assert done.returncode == fails, done.stderr
        return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, symlinks=os.name != "nt")
    (site,) = home.glob("lib/python*/site-packages")
    lent = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "lent.pth").write_text("\n".join(lent))
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    return Place(python, tmp_path_factory.mktemp("empty"))


def test_the_wheel_holds_every_file_of_the_package_and_the_bundled_ones(wheel: Path) -> None:
    files = {
        path for path in (ROOT / "vit_viz").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    package = {path.relative_to(ROOT).as_posix() for path in files if path.suffix not in (".pyi", ".pyc")}
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == package | BUNDLED
    assert {Path(name).suffix for name in inside} >= {
        ".py",
        ".js",
        ".wasm",
        ".css",
        ".html",
        ".svg",
        ".jpg",
        ".typed",
    }
    assert wheel.stat().st_size < MOST_BYTES


def test_the_sdist_holds_what_the_wheel_is_made_of_and_no_tests(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "LICENSE", "README.md", "assets/mini.safetensors"} <= names
    assert {name.split("/")[0] for name in names} & {
        "tests",
        "benchmarks",
        "training",
        "node_modules",
    } == set()


def test_what_the_wheel_says_of_itself(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        said = Parser().parsestr(archive.read(name).decode("utf-8"))
    assert (said["Name"], said["Version"]) == ("vit_viz", vit_viz.__version__)
    assert said["License-Expression"] == "Apache-2.0"
    text = str(said.get_payload())
    assert text.startswith("# vit_viz\n")
    assert "## From Python" in text
    assert "](assets/" not in text


def test_python_traces_the_bundled_model_from_an_empty_folder(place: Place) -> None:
    code = """
import importlib.metadata, json, sys
import vit_viz as vv
from vit_viz.labels import imagenet1k
from vit_viz.samples import sample
trace = vv.trace("mini", sample("shapes"))
versions = [vv.__version__, importlib.metadata.version("vit_viz")]
print(json.dumps([vv.__file__, *versions, trace.proof_status, len(imagenet1k()), sys.path]))
"""
    file, version, installed, proof, classes, path = json.loads(place.run("python", "-c", code).stdout)
    assert Path(file).is_relative_to(place.python.parents[1])
    assert str(ROOT) not in path
    assert version == installed == vit_viz.__version__
    assert (proof, classes) == ("proven", 1000)


def test_the_example_survey_opens_with_its_photos_from_an_empty_folder(place: Place) -> None:
    code = """
from vit_viz.images import decode
from vit_viz.bundled import example_photos, example_survey
from vit_viz.surveys.run import Survey
survey = Survey(example_survey())
names = survey.table("photos", ["photo"]).to_pydict()["photo"]
print(len(names) == survey.num_photos, {decode(example_photos().parent / name).size for name in names}, example_survey())
"""
    said = place.run("python", "-c", code).stdout.strip()
    assert said.startswith("True {(192, 160)} ")
    assert Path(said.rpartition(" ")[2]).is_relative_to(place.python.parents[1])


def test_the_command_proves_the_bundled_model_from_an_empty_folder(place: Place) -> None:
    assert place.run("vit-viz", "proof", "mini").stdout.splitlines()[-1] == "proven"


def test_the_app_serves_its_page_from_an_empty_folder(place: Place) -> None:
    port = free_port()
    command = [place.python.parent / "vit-viz", "serve", "--port", str(port)]
    log = place.folder.parent / "app.log"
    with log.open("wb") as output:
        app = subprocess.Popen(command, cwd=place.folder, env=place.variables, stdout=output, stderr=output)
    try:
        url = f"http://127.0.0.1:{port}/"
        wait_for(url, app)
        page = urllib.request.urlopen(url, timeout=30).read().decode("utf-8")
        assert "vit_viz" in page
    except RuntimeError:
        pytest.fail(log.read_text("utf-8"))
    finally:
        app.send_signal(signal.SIGTERM)
        app.wait(PATIENCE)


def test_without_the_packages_of_the_app_python_works_and_serving_says_what_to_install(place: Place) -> None:
    code = """
import sys
for name in ("gradio", "gradio_client", "plotly", "latex2mathml"):
    sys.modules[name] = None
import vit_viz as vv
from vit_viz.cli import main
from vit_viz.samples import sample, sample_names
print(vv.explain("mini", sample("shapes"))["relevance"].grid, sample_names())
try:
    vv.serve("mini")
except vv.VitVizError as error:
    print(error)
sys.exit(main(["serve"]))
"""
    done = place.run("python", "-c", code, fails=2)
    first, second = done.stdout.splitlines()
    assert first.startswith("(16, 16) ")
    assert second == "The page needs gradio, which is not installed: pip install 'vit_viz[app]'."
    assert done.stderr == f"vit-viz: {second}\n"
