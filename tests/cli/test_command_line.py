"""The command line: a command for every question, files that are whole, one line for what goes wrong."""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import vit_viz
from tests.cli.conftest import Run
from tests.ui.desk import odd_picture
from vit_viz import progress
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import arrays_of
from vit_viz.capture.report import HOLDS, Check, ProofReport
from vit_viz.checkpoints.catalog import BUNDLED, CATALOG
from vit_viz.cli import main
from vit_viz.cli.commands import flag_of, options_of_methods
from vit_viz.cli.parser import command_line
from vit_viz.figures.files import file_of, named
from vit_viz.figures.recipes import as_command
from vit_viz.figures.request import DrawingOptions, Output, figure_for
from vit_viz.session.inputs import InputOptions, properties
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request
from vit_viz.session.run import subject_of
from vit_viz.session.session import Session


def commands() -> dict[str, argparse.ArgumentParser]:
    parser = command_line()
    inside = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(inside.choices)


def test_every_question_is_a_command_with_its_options() -> None:
    for name, question in QUESTIONS.items():
        said = commands()[name].format_help()
        for field in question.options.schema():
            assert f"--{field.name.replace('_', '-')}" in said
            assert field.option.sentence.split()[0] in said
        assert ("--query" in said, "--target" in said, "PHOTO" in said) == (
            question.takes_query, question.takes_target, question.takes_image,
        )  # fmt: skip


def test_every_option_of_every_command_says_what_it_does() -> None:
    for name, parser in commands().items():
        assert parser.description, name
        for action in parser._actions:
            assert action.help, f"{name} {action.option_strings or action.dest}"


def test_no_option_of_a_question_is_called_as_what_all_take() -> None:
    common = {
        "model",
        "image",
        "query",
        "target",
        "device",
        "output",
        "format",
        "json",
        "photos",
        "run",
        "question",
    }
    common |= {
        "title",
        "shared_scale",
        *(field.name for kind in (InputOptions, DrawingOptions, Output) for field in kind.schema()),
    }
    for question in QUESTIONS.values():
        assert common & {field.name for field in question.options.schema()} == set()
        assert {field.name for field in question.options.schema()} <= set(properties(question))


def test_numbers_and_request_go_into_an_npz(
    run: Run, session: Session, photos: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "out" / "map.npz"
    assert run("rollout", photos[0], "--discard", "0.25", "--query", "1,2", "-o", file, "--parents") == (
        0,
        f"{file}\n",
        "",
    )
    request = request_for(session, subject_of(session, photos[0]), "rollout", discard=0.25, query=(1, 2))
    with np.load(file, allow_pickle=False) as found:
        expected = arrays_of(session.run(request))
        assert {*expected} == {*found.files} - {"vit_viz"}
        for name, values in expected.items():
            assert found[name].dtype == np.float32
            assert found[name].tobytes() == values.tobytes()
        record = json.loads(str(found["vit_viz"]))["provenance"]
    assert Request.from_json(json.dumps(record["request"])) == request.of_picture("")
    assert record["weights"] == "odd"


def test_an_answer_in_words_has_names_with_scores_or_arrays_with_their_ends(
    run: Run, photos: list[Path]
) -> None:
    code, printed, _ = run("links", photos[0], "--count", "2", "--layer", "1", "--head", "2")
    title, *lines = printed.splitlines()
    assert (code, title.rpartition(": ")[2]) == (0, "the 2 strongest links between patches")
    assert all(re.fullmatch(r"patch \(\d, \d\) looks at patch \(\d, \d\) +0\.\d+", line) for line in lines)
    code, printed, _ = run("layer_similarity", photos[0])  # which has names of layers, and no scores
    assert code == 0
    assert re.search(r"values +4 x 4 ", printed)


def test_json_and_csv_hold_every_number_exactly(
    run: Run, session: Session, photos: list[Path], tmp_path: Path
) -> None:
    expected = arrays_of(session.run(request_for(session, subject_of(session, photos[0]), "mosaic")))[
        "values"
    ]
    code, printed, _ = run("mosaic", photos[0], "--json")
    assert code == 0
    assert np.array(json.loads(printed)["numbers"]["values"], np.float32).tobytes() == expected.tobytes()
    run("mosaic", photos[0], "-o", tmp_path / "all.csv")
    table = [line for line in (tmp_path / "all.csv").read_text().splitlines() if not line.startswith("#")]
    head, *lines = csv.reader(table)
    assert head == ["layer", "head", "row", "col", "value"]
    for layer, head_, row, col, value in lines:
        assert np.float32(value) == expected[int(layer), int(head_), int(row), int(col)]
    assert len(lines) == expected.size


def test_several_photos_go_into_a_folder(run: Run, photos: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "maps"
    code, printed, _ = run(
        *("look", str(tmp_path / "photo *.png"), "twins", "-o", f"{folder}/", "--parents"),
        *("--layer", "1", "--head", "3"),
    )
    assert code == 0
    assert sorted(file.name for file in folder.iterdir()) == [
        "photo 0_look.png",
        "photo 1_look.png",
        "twins_look.png",
    ]
    assert printed.splitlines() == [
        str(folder / f"{name}_look.png") for name in ("photo 0", "photo 1", "twins")
    ]
    with Image.open(folder / "twins_look.png") as picture:
        assert picture.format == "PNG"


def test_the_numbers_about_several_photos_go_into_one_file(
    run: Run, session: Session, photos: list[Path], tmp_path: Path
) -> None:
    names = [*map(str, photos), "twins"]
    expected = {}
    for name in names:
        request = request_for(session, subject_of(session, name, mode="crop"), "look", layer=1, head=2)
        expected[name] = session.run(request).values  # type: ignore[union-attr]
    asked = ("look", *names, "--mode", "crop", "--layer", "1", "--head", "2")
    file = tmp_path / "new" / "all.npz"
    assert run(*asked, "-o", file, "--parents") == (0, f"{file}\n", "")
    with np.load(file, allow_pickle=False) as one:
        assert one["photos"].tolist() == names
        assert one["values"].dtype == np.float32
        assert one["values"].tobytes() == np.stack([expected[name] for name in names]).tobytes()
        facts = json.loads(str(one["vit_viz"]))["answers"]
    assert list(facts) == sorted(names)
    images = {name: facts[name]["provenance"]["image"] for name in names}
    assert images == {
        name: session.digest(subject_of(session, name).image) for name in names
    }  # each with the record of its own photo
    assert run(*asked, "-o", tmp_path / "all.csv")[0] == 0
    head, *lines = csv.reader(
        line for line in (tmp_path / "all.csv").read_text().splitlines() if not line.startswith("#")
    )
    assert head == ["photo", "row", "col", "value"]
    assert len(lines) == 3 * 24
    for photo, row, col, value in lines:
        assert np.float32(value) == expected[photo][int(row), int(col)]
    assert run(*asked, "-o", tmp_path / "all.json", "--json")[0] == 0
    found = json.loads((tmp_path / "all.json").read_text())
    assert [one["photo"] for one in found] == names
    assert np.array(found[2]["numbers"]["values"], np.float32).tobytes() == expected["twins"].tobytes()


def test_maps_of_other_grids_stand_in_one_file_by_name_and_are_not_padded(
    run: Run, session: Session, photos: list[Path], tmp_path: Path
) -> None:
    tall = tmp_path / "tall.png"
    odd_picture(3).resize((48, 130)).save(tall)
    names = [str(photos[1]), str(tall)]
    assert run("rollout", *names, "-o", tmp_path / "all.npz")[0] == 0
    assert run("rollout", *names, "-o", tmp_path / "all.csv")[0] == 0
    with np.load(tmp_path / "all.npz", allow_pickle=False) as one:
        assert {*one.files} == {"photos", "vit_viz", *(f"values/{name}" for name in one["photos"])}
        found = {name: one[f"values/{name}"] for name in names}
    lines = [line for line in (tmp_path / "all.csv").read_text().splitlines() if not line.startswith("#")]
    for name in names:
        expected = session.run(request_for(session, subject_of(session, name), "rollout"))
        assert found[name].tobytes() == expected.values.tobytes()  # type: ignore[union-attr]
        assert sum(line.startswith(name) for line in lines) == found[name].size
    assert found[names[0]].shape != found[names[1]].shape


def test_of_several_photos_in_one_file_those_that_can_be_read_are_there(
    run: Run, photos: list[Path], tmp_path: Path
) -> None:
    broken, file = tmp_path / "photo 0a.png", tmp_path / "all.npz"
    broken.write_bytes(b"no picture")
    code, printed, said = run("classes", tmp_path / "photo *.png", "-o", file)
    assert (code, printed) == (2, f"{file}\n")
    assert said.splitlines()[0].startswith(f"vit-viz: {broken}: ")
    assert said.splitlines()[-1] == "vit-viz: 1 of 3 answers are missing, for the reasons above."
    with np.load(file, allow_pickle=False) as one:
        assert one["photos"].tolist() == [str(photo) for photo in photos]
        assert one["scores"].shape == (2, 5)
    broken.rename(photos[0])
    file.unlink()
    assert run("classes", photos[0], broken, "-o", file)[:2] == (2, "")
    assert not file.exists()


@pytest.mark.parametrize("form", ["npz", "csv"])
def test_a_file_about_several_photos_says_that_it_is_not_made_again(
    run: Run, photos: list[Path], tmp_path: Path, form: str
) -> None:
    file = tmp_path / f"all.{form}"
    assert run("rollout", *photos, "-o", file)[0] == 0
    assert run("replay", file) == (
        2, "", "vit-viz: This file holds the answers about 2 photos; only a file about one photo can be made again.\n"
    )  # fmt: skip


def test_explain_answers_with_each_method(run: Run, photos: list[Path], tmp_path: Path) -> None:
    code, printed, _ = run(
        "explain", photos[0], "--methods", "rollout,relevance", "--target", "animal 3", "--json"
    )
    assert code == 0
    found = [json.loads(line) for line in printed.splitlines()]
    assert [one["question"] for one in found] == ["rollout", "relevance"]
    assert "target" not in found[0]["request"]["parameters"]
    assert found[1]["request"]["parameters"]["target"] == 3


def test_a_shared_scale_changes_what_is_drawn_side_by_side_and_is_offered_nowhere_else(
    run: Run, photos: list[Path], tmp_path: Path
) -> None:
    files = {}
    for command in ("explain", "comparison"):
        for scale in ([], ["--shared-scale"]):
            file = tmp_path / f"{command}{len(scale)}.svg"
            code, _, said = run(command, photos[0], "--methods", "rollout,gradcam", *scale, "-o", file)
            assert (code, said) == (0, "")
            files[command, bool(scale)] = file.read_bytes()
    assert files["explain", True] != files["explain", False]
    assert files["comparison", True] == files["explain", True]
    assert files["comparison", False] == files["explain", False]
    offered = {name for name, parser in commands().items() if "--shared-scale" in parser.format_help()}
    assert offered == {*METHODS, "comparison", "explain"}
    assert run("heads", photos[0], "--shared-scale")[0] == 2


def test_explain_has_the_options_of_its_methods() -> None:
    said, flags = " ".join(commands()["explain"].format_help().split()), set()
    for name, method in METHODS.items():
        for field in method.options.schema():
            known, takers = options_of_methods()[field.name]
            same = replace(known.option, label="", link="") == replace(field.option, label="", link="")
            assert replace(known, option=field.option) == field
            assert same, "methods that share the name of an option mean the same by it"
            assert name in takers
            assert f"{', '.join(takers)}: {field.option.sentence}" in said
            flags.add(flag_of(field.name))
    assert flags >= {"--discard", "--attention-share", "--head-fusion"}
    assert all(flag in said for flag in flags)


def test_an_option_of_a_method_reaches_those_that_take_it(
    run: Run, session: Session, photos: list[Path]
) -> None:
    code, printed, _ = run(
        *("explain", photos[0], "--methods", "rollout,attention", "--discard", "0.25", "--json")
    )
    assert code == 0
    rollout, attention = (json.loads(line) for line in printed.splitlines())
    expected = session.run(request_for(session, subject_of(session, photos[0]), "rollout", discard=0.25))
    found = np.array(rollout["numbers"]["values"], np.float32)
    assert found.tobytes() == expected.values.tobytes()  # type: ignore[union-attr]
    assert "options" not in attention["request"]["parameters"]


def test_without_a_file_the_answer_is_told_in_words(run: Run, photos: list[Path]) -> None:
    code, printed, said = run("classes", photos[0])
    assert (code, said) == (0, "")
    assert printed.splitlines()[0] == f"{photos[0]}: probability"
    assert printed.count("animal ") == 5
    assert "3 x 5 x 4 x 6" in run("mosaic", photos[0], "--mode", "crop")[1]


REFUSED: list[tuple[list[str], str]] = [
    ([], "COMMAND"),
    (["look"], "PHOTO"),
    (["nothing", "lion"], "nothing"),
    (["rollout", "twins", "--discard", "7"], "The discard ratio is a number from 0 to 0.95, not '7'."),
    (["look", "twins", "--direction", "up"], "The direction is one of row, column, not 'up'."),
    (["rollout", "twins", "--target", "3"], "--target"),
    (["rollout", "missing.jpg"], "missing.jpg cannot be opened"),
    (["rollout", "missing*.jpg"], "No file matches 'missing*.jpg'."),
    (["look", "twins", "--layer", "44"], "Layer 44 does not exist"),
    (["look", "twins", "-o", "map.doc"], "A file ends in .png"),
    (["look", "twins", "shapes", "-o", "map.png"], "2 answers cannot be written into one file; name a folder, such as map/. "
     "The numbers of one question about several photos go into one .csv, .npz, .json."),
    (["explain", "twins", "shapes", "--methods", "relevance,rollout", "-o", "all.npz"],
     "4 answers cannot be written into one file; name a folder, such as all/."),
    (["look", "twins", "shapes", "twins", "-o", "all.npz"], "One file holds each photo once, but 'twins' is named twice."),
    (["look", "twins", "twins", "-o", "maps/"], "Two of these photos are called 'twins'"),
    (["explain", "twins", "--methods", "astrology"], "There is no method 'astrology'"),
    (["explain", "twins", "--discard", "7"], "The discard ratio is a number from 0 to 0.95, not '7'."),
    (["explain", "twins", "--methods", "relevance", "--discard", "0.5"],
     "--discard is an option of rollout, which you did not ask for."),
    (["classes", "twins", "-o", "best.gif"], "An animation goes through the layers of an attention map"),
    (["look", "twins", "--dpi", "9", "-o", "map.png"], "The dots per inch"),
    (["replay", "missing.png"], "missing.png cannot be read."),
    (["look", "twins", "--part", "0,0,9,9"], "A part has at least 32 x 32 pixels"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "words"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_what_is_not_possible_is_one_line_and_exit_code_2(
    run: Run, argv: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed, said = run(*argv)
    assert (code, printed) == (2, "")
    assert words in said
    assert said.startswith("vit-viz")
    assert said.count("\n") == 1
    assert list(tmp_path.rglob("*")) == []


def test_an_interrupt_ends_with_130_and_leaves_nothing(
    run: Run, photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    folder = tmp_path / "maps"
    code, printed, said = run("look", *photos, "-o", f"{folder}/", "--parents")
    assert (code, printed, said) == (130, "", "vit-viz: interrupted\n")
    assert list(folder.iterdir()) == []


def test_a_question_of_many_passes_tells_how_far_it_is(
    run: Run, photos: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)
    code, _, said = run("ablation", photos[0])
    assert code == 0
    assert "ablation" in said
    assert "100%" in said


def test_models_are_listed(run: Run) -> None:
    code, printed, _ = run("models")
    assert code == 0
    assert [line.split()[0] for line in printed.splitlines()] == [
        "name",
        *BUNDLED,
        *(entry.name for entry in CATALOG),
    ]
    assert [one["name"] for one in json.loads(run("models", "--json")[1])] == [
        *BUNDLED,
        *(e.name for e in CATALOG),
    ]


def test_a_proof_is_told_layer_by_layer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, printed, said = run("proof", "odd")
    assert (code, said) == (0, "")
    assert printed.splitlines()[-1] == "proven"
    assert [line.split()[0] for line in printed.splitlines()[2:5]] == ["0", "1", "2"]
    assert len(json.loads(run("proof", "odd", "--json")[1])["layers"]) == 3
    wrong = Check("fails", "The kernel computed something else.")
    monkeypatch.setattr("vit_viz.capture.Trace.proof_report", ProofReport(HOLDS, HOLDS, HOLDS, kernel=wrong))
    code, printed, said = run("proof", "odd")
    assert (code, said) == (2, "vit-viz: The kernel computed something else.\n")
    assert printed.splitlines()[-1] == "refuted"


def test_the_explorer_is_saved_as_a_page(run: Run, photos: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "look" / "page.html"
    assert run("page", photos[1], "--mode", "crop", "-o", file, "--parents") == (0, f"{file}\n", "")
    assert b"photo 1" in file.read_bytes()
    assert b"Content-Security-Policy" in file.read_bytes()


def test_the_app_is_opened_by_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    import app

    opened: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "vit_viz.ui.app.launch",
        lambda session, **options: opened.append({"model": session.default_model} | options),
    )
    words = ["--model", "mini", "--host", "127.0.0.9", "--port", "7999", "--device", "cpu"]
    assert main(["serve", *words]) == 0
    monkeypatch.setattr(sys, "argv", ["app.py", *words])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 0
    assert len(opened) == 2
    assert {"model": "mini", "host": "127.0.0.9", "port": 7999, "share": False}.items() <= opened[0].items()
    assert opened[0] == opened[1]


@pytest.mark.parametrize("by_flag", [True, False])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nix", "There is no model 'nix': expected mini, "),
        ("some/folder/gone.pth", "There is no model 'gone.pth': expected mini, "),
        ("folder/gone.SAFETENSORS", "There is no model 'gone.SAFETENSORS': expected mini, "),
        ("broken.safetensors", "'broken.safetensors' has a table of contents"),
        ("empty", "The folder 'empty' holds no checkpoint"),
    ],
)
def test_an_app_whose_model_is_none_is_not_opened(
    name: str,
    words: str,
    by_flag: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("vit_viz.ui.app.launch", lambda *_, **__: pytest.fail("it was opened"))
    monkeypatch.chdir(tmp_path)
    Path("broken.safetensors").write_bytes(b"nonsense")
    Path("empty").mkdir()
    monkeypatch.setenv("VIT_VIZ_MODEL", "mini" if by_flag else name)
    assert main(["serve", "--device", "cpu", *(["--model", name] if by_flag else [])]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"vit-viz: {words}")


def test_the_module_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["vit_viz", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("vit_viz", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"vit_viz {vit_viz.__version__}\n"


# --- the same figure


FIGURES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "look",
        {"layer": 1, "head": "3", "query": "1,2", "norm": True},
        {"style": "tint", "smooth": False, "mask": 0.6},
        "svg",
    ),
    ("rollout", {"discard": 0.25}, {"clip": False}, "png"),
    ("relevance", {"target": "2-5"}, {}, "csv"),
    ("heads", {"measure": "entropy"}, {}, "npz"),
    ("patches", {"numbers": True}, {}, "pdf"),
    ("sequence", {}, {}, "npz"),
    ("sequence", {}, {}, "csv"),
    ("positions", {"grid": "3,5", "place": "2,4"}, {}, "png"),
    ("positions", {}, {}, "csv"),
]


@pytest.mark.parametrize(
    ("name", "options", "how", "form"), FIGURES, ids=[f"{name}-{form}" for name, *_, form in FIGURES]
)
def test_a_copied_command_makes_the_bytes_of_the_figure(
    run: Run,
    session: Session,
    name: str,
    options: dict[str, Any],
    how: dict[str, Any],
    form: str,
    tmp_path: Path,
) -> None:
    subject = subject_of(session, "twins", mode="crop", part=(0, 0, 64, 90))
    output = Output.of({"format": form, "width_cm": 5.0, "dpi": 72}.items())
    figure = named(session, figure_for(request_for(session, subject, name, **options), DrawingOptions(**how)))
    wanted = file_of(session, figure, output).data
    program, *words = shlex.split(as_command(figure, output))
    assert program == "vit-viz"
    file = tmp_path / f"figure.{form}"
    assert words[-1] == file.name
    assert run(*words[:-1], file)[0] == 0
    assert file.read_bytes() == wanted
    changed = tmp_path / f"other.{form}"
    code, printed, _ = run("replay", file)
    assert (code, printed) == (0, f"{file}: made again, equal bytes\n")
    if form == "png":
        assert run("replay", file, "-o", changed)[0] == 0
        assert changed.read_bytes() == wanted
        file.write_bytes(wanted + b"more")
        code, printed, _ = run("replay", file, "-o", changed)
        assert (code, printed) == (3, f"{file}: made again, equal numbers, other bytes: {changed}\n")


# --- completion

COMPLETE = "COMP_WORDS=({words}); COMP_CWORD={at}; _vit_viz; echo ${{COMPREPLY[*]}}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_is_printed_and_the_shell_goes_on(run: Run, shell: str) -> None:
    """`eval "$(vit-viz completion bash)" || exit` in a profile must not close the shell."""
    code, printed, said = run("completion", shell)
    assert (code, said) == (0, "")
    assert printed.endswith("\n")
    assert not printed.endswith("\n\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["vit-viz", "rollo"], {"rollout"}),
        (["vit-viz", "look", "--dir"], {"--direction"}),
        (["vit-viz", "look", "--direction", ""], {"row", "column"}),
        (["vit-viz", "heads", "--measure", "ent"], {"entropy"}),
        (["vit-viz", "completion", ""], {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(run: Run, words: list[str], expected: set[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not on this machine")
    script = run("completion", "bash")[1]
    quoted = " ".join(f'"{word}"' for word in words)
    ask = f"{script}\n{COMPLETE.format(words=quoted, at=len(words) - 1)}"
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


def test_zsh_and_fish_know_every_command_and_option(run: Run) -> None:
    (_, zsh, _), (_, fish, _) = (run("completion", shell) for shell in ("zsh", "fish"))
    assert zsh.startswith("autoload -U +X bashcompinit")
    for name, parser in commands().items():
        assert f" {name}) words=" in zsh
        assert f"-a {name} -d " in fish
        for action in parser._actions:
            for flag in (flag for flag in action.option_strings if flag.startswith("--")):
                assert any(
                    f"_from {name}'" in line and f"-l {flag[2:]} " in line for line in fish.splitlines()
                )


@pytest.mark.parametrize(("layer", "meant"), [(-1, 2), (-2, 1)])
def test_negative_layers_count_from_the_last(run: Run, photos: list[Path], layer: int, meant: int) -> None:
    for name in ("look", "links"):
        got, expected = (
            json.loads(run(name, photos[0], "--layer", one, "--json")[1]) for one in (layer, meant)
        )
        assert got == expected
        assert got["request"]["parameters"]["layer"] == meant
