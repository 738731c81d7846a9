"""Names that are imported when they are first used: the right ones, all of them, and never hidden by a module."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import vit_viz
import vit_viz.images
from vit_viz.errors import VitVizError
from vit_viz.lazy import Late, Tensor, extra, importer, nn, torch as late_torch

PACKAGES = [vit_viz, vit_viz.images]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_names_that_type_checkers_see_are_there(package: ModuleType) -> None:
    _, names = importer(package.__name__, str(package.__file__))
    assert len(names) > 2
    assert set(names) <= set(package.__all__)
    things = {name: getattr(package, name) for name in names}
    assert [n for n, thing in things.items() if inspect.isroutine(thing) and thing.__name__ != n] == []


def test_a_name_is_what_its_module_defines() -> None:
    assert vit_viz.Labels is importlib.import_module("vit_viz.labels").Labels
    assert vit_viz.trace is importlib.import_module("vit_viz.capture.tracing").trace
    assert vit_viz.images.Mode is importlib.import_module("vit_viz.images.preprocess").Mode
    assert {"serve", "run", "rollout", "TokenLayout", "VitVizError"} < set(vit_viz.__all__)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_public_name_is_the_thing_itself_and_nothing_that_stands_for_it(package: ModuleType) -> None:
    assert [name for name in package.__all__ if type(getattr(package, name)) is Late] == []
    assert list(inspect.signature(vit_viz.trace).parameters)[:2] == ["model_or_loaded", "image_or_pixels"]


def test_a_late_class_is_derived_from_and_asked_for_its_subclasses() -> None:
    late = Late("vit_viz.labels", "Labels")

    class Derived(late):  # type: ignore[misc, valid-type]
        pass

    assert Derived.__mro__[1] is vit_viz.Labels
    assert (issubclass(Derived, late), issubclass(int, late)) == (True, False)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_module_hides_a_public_name(package: ModuleType) -> None:
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert len(modules) > 4
    assert modules & set(package.__all__) == set()


def test_dir_of_the_package_has_the_public_names_and_nothing_else_also_after_their_use() -> None:
    code = "import vit_viz, vit_viz.images; vit_viz.Labels; print(*dir(vit_viz))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert [name for name in names if not name.startswith("__")] == sorted(vit_viz.__all__)
    assert {"__all__", "__doc__", "__version__"} <= set(names)


def test_a_module_is_imported_at_the_first_use_of_its_name() -> None:
    code = """import sys, vit_viz
print('vit_viz.labels' in sys.modules, vit_viz.Labels.__module__, 'vit_viz.labels' in sys.modules, 'Labels' in vars(vit_viz))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "vit_viz.labels", "True", "True"]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_name_that_does_not_exist_is_an_attribute_error_as_of_any_module(package: ModuleType) -> None:
    with pytest.raises(
        AttributeError, match=f"^module '{package.__name__}' has no attribute 'no_such_name'$"
    ):
        _ = package.no_such_name
    assert not hasattr(package, "no_such_name")


def test_a_module_that_cannot_be_imported_says_so_and_not_that_the_name_is_missing(tmp_path: Path) -> None:
    package = tmp_path / "__init__.py"
    package.write_text(
        "if TYPE_CHECKING:\n    from json import loads\n\n    from vit_viz.no_such_module import name as name, other\n"
    )
    attribute, names = importer("vit_viz", str(package))
    assert names == ["name", "other"]
    with pytest.raises(ImportError):
        attribute("name")


def test_a_late_class_is_the_class_wherever_one_is_needed() -> None:
    numbers = late_torch.zeros(2, dtype=late_torch.float64)
    assert isinstance(numbers, Tensor)
    assert isinstance(numbers, str | Tensor)
    assert isinstance("text", Tensor | str | None)
    assert not isinstance([0.0], Tensor)
    assert not isinstance(numbers, str | Late("vit_viz.labels", "Labels"))
    assert isinstance(nn.Identity(), late_torch.nn.Module)


def test_what_is_replaced_in_a_late_module_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert late_torch.zeros is torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda: "other")
    assert late_torch.zeros() == "other"


def test_a_late_module_is_looked_for_once() -> None:
    assert late_torch.zeros is torch.zeros
    assert vars(late_torch) is vars(torch)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = late_torch.no_such_name


def test_nothing_is_an_instance_of_a_class_whose_module_is_still_being_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = ModuleType("begun")
    monkeypatch.setitem(sys.modules, "begun", begun)
    late = Late("begun", "Thing")
    assert not isinstance(1, late)
    vars(begun)["Thing"] = int
    assert isinstance(1, late)


def test_a_late_function_is_called_and_a_name_that_is_none_is_said() -> None:
    assert Late("json", "loads")("[1]") == [1]
    with pytest.raises(AttributeError, match="no_such_name"):
        Late("vit_viz.lazy", "no_such_name")()


def test_nothing_is_an_instance_of_a_class_that_nobody_imported_and_asking_imports_nothing() -> None:
    code = """import sys
from vit_viz.lazy import Tensor
print(isinstance([1.0], Tensor), isinstance(1, Tensor | int), 'torch' in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def test_a_library_that_only_an_extra_installs_is_asked_for_in_one_sentence() -> None:
    with (
        pytest.raises(
            VitVizError, match=r"^The page needs no_such_page, .+: pip install 'vit_viz\[app\]'\.$"
        ),
        extra("app", needed_for="The page"),
    ):
        importlib.import_module("no_such_page.of_it")


def test_a_module_of_ours_that_is_missing_is_no_matter_of_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError), extra("app", needed_for="The page"):
        importlib.import_module("vit_viz.no_such_module")
