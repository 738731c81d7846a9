"""What a file of torch.save claims to hold, checked before torch unpacks it.

`weights_only` runs no code, but it builds what the pickle in the file asks for: `bytearray(10**11)` and `torch.FloatTensor(10**10)`
are among what it calls, and a compressed entry of a zip may grow a thousandfold. So a file is read only where its pickles name
nothing but what state dicts consist of and what trainings note beside them, and where its table of contents adds up. Of the notes'
classes only the names are read: each is an empty dictionary here, and none is imported (`reading_notes_as_nothing`).

Source: torch/serialization.py and torch/_weights_only_unpickler.py of PyTorch 2.13.
"""

from __future__ import annotations

import io
import pickletools
import re
import sys
import threading
import zipfile
from _compat_pickle import IMPORT_MAPPING
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal

from vit_viz.errors import CheckpointError, UnsafeFile, VitVizError
from vit_viz.lazy import Tensor, torch
from vit_viz.silence import without_warnings

Format = Literal["zip", "script", "older"]

MAX_PICKLE_BYTES = 10_000_000
"""Bound on everything but the numbers of the tensors; a ViT of 7 billion parameters has 0.1 MB of it."""

_ZIP = b"PK\x03\x04"  # by which torch tells its format of today from the older one
_LEGACY_PICKLES = 5  # the magic number, the protocol, the system, the content, the keys of its storages
_BYTES_PER_NUMBER = 8  # of the widest dtype of real numbers
_ENCODE = "_codecs encode"
_STORAGE = re.compile(r"torch \w+Storage")
_OTHER_IMPORTS = ("INST", "OBJ", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4")  # which torch.save does not write
_NAMES = frozenset(
    {
        *("collections OrderedDict", "collections Counter", "__builtin__ set", "builtins set"),
        *("torch Size", "torch device", "torch.serialization _get_layout", "torch.nn.parameter Parameter"),
        *("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2"),
        *("torch._utils _rebuild_parameter", "torch._utils _rebuild_parameter_with_state"),
        "torch._utils _rebuild_sparse_tensor",  # refused by name when it is there
    }
)
_NOTES = frozenset(
    {
        *("argparse Namespace", "types SimpleNamespace", "collections defaultdict", "typing Any"),
        *(f"torch.jit._pickle build_{kind}list" for kind in ("int", "double", "bool", "tensor")),
        "torch.jit._pickle restore_type_tag",
        *("copy_reg _reconstructor", "copyreg _reconstructor", "torch.torch_version TorchVersion"),
        *(f"__builtin__ {name}" for name in ("object", "dict", "list", "tuple", "int", "float", "str", "bool")),
        *(f"pathlib{inner} {pure}{system}Path" for inner in ("", "._local") for pure in ("", "Pure")
          for system in ("", "Posix", "Windows")),
    }
)  # fmt: skip
"""What the standard library and torch have in arguments, paths and versions; what else they have might do something when called."""

_reading_notes = threading.Lock()  # torch keeps for the whole process which names stand for what


def check_torch_file(path: Path, *, max_numbers: int) -> Format:
    """Refuse by its table of contents and its pickles a file that torch.save did not write, or that holds too much.

    Args:
        path: of a regular file.
        max_numbers: what its tensors may hold together.

    Returns:
        "zip", whose tensors can be mapped into memory; "script" of TorchScript, whose code is not read; "older", read in whole.
    """
    try:
        with path.open("rb") as file, without_warnings():  # about escapes in the text of a damaged pickle
            is_zip = file.read(len(_ZIP)) == _ZIP
            file.seek(0)
            if is_zip:
                return _check_zip(file, path, max_numbers)
            _check_legacy(file, path, max_numbers)
            return "older"
    except VitVizError:
        raise
    except Exception as error:  # on a damaged file zipfile and pickletools may raise anything
        raise damaged(path.name) from error


def damaged(name: str) -> CheckpointError:
    """The error for a file that cannot be read."""
    return CheckpointError(f"{name!r} cannot be read as a PyTorch checkpoint: it is damaged or cut short.")


def unsafe_pickle(name: str) -> UnsafeFile:
    """The error for a file that holds more than tensors."""
    return UnsafeFile(
        f"{name!r} holds Python objects besides tensors, which could run code or fill the memory when read, or is damaged; "
        "save its state_dict as safetensors and load that."
    )


def _check_zip(file: BinaryIO, path: Path, max_numbers: int) -> Format:
    """Check that the entries of a zip are as torch.save writes them: not compressed, and each with its own bytes."""
    with zipfile.ZipFile(file) as archive:
        entries = _without_code(archive)
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise UnsafeFile(
                f"{path.name!r} has compressed entries, which torch.save never writes: it is not read."
            )
        whole = sum(entry.file_size for entry in entries)
        if whole > path.stat().st_size:
            raise UnsafeFile(f"{path.name!r} claims to be larger than its data: it is not read.")
        pickles = [entry for entry in entries if re.fullmatch(r"[^/]+/data\.pkl", entry.filename)]
        if len(pickles) != 1 or len({entry.filename for entry in entries}) != len(entries):
            raise damaged(path.name)
        if pickles[0].file_size > MAX_PICKLE_BYTES:
            raise _too_long(path.name)
        _check_bytes(whole - pickles[0].file_size, path.name, max_numbers)
        _check_imports(io.BytesIO(archive.read(pickles[0])), path.name, pickles=1)
        return "zip" if len(entries) == len(archive.infolist()) else "script"


def _without_code(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """All entries, but of a TorchScript archive those that hold its tensors, which are as torch.save writes them."""
    entries = archive.infolist()
    if not any(re.fullmatch(r"[^/]+/constants\.pkl", entry.filename) for entry in entries):
        return entries
    tensors = re.compile(r"[^/]+/(data\.pkl|data/.*|byteorder|(\.data/)?version)")
    return [entry for entry in entries if tensors.fullmatch(entry.filename)]


def tensors_of_script(path: Path) -> io.BytesIO:
    """A TorchScript archive that was checked as a file of torch.save: torch reads no tensors beside code."""
    copy = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as tensors:
        for entry in _without_code(archive):
            tensors.writestr(entry.filename, archive.read(entry))
    copy.seek(0)
    return copy


def state_of_script(module: Any) -> dict[str, Tensor]:
    """The tensors of a scripted module and of those within it, by the names of its state dict; each part once."""
    state: dict[str, Tensor] = {}
    waiting, seen = [("", module)], {id(module)}
    while waiting:
        prefix, part = waiting.pop()
        for name, value in vars(part).items() if isinstance(part, OrderedDict) else ():
            if isinstance(value, Tensor):
                state[f"{prefix}{name}"] = value
            elif id(value) not in seen:
                seen.add(id(value))
                waiting.append((f"{prefix}{name}.", value))
    return state


def _check_legacy(file: BinaryIO, path: Path, max_numbers: int) -> None:
    """Check the beginning of a file of the older format, its pickles, and how much follows."""
    head = io.BytesIO(file.read(MAX_PICKLE_BYTES))
    try:
        _check_imports(head, path.name, pickles=_LEGACY_PICKLES)
    except ValueError as error:
        raise _too_long(path.name) if head.getbuffer().nbytes == MAX_PICKLE_BYTES else error from error
    _check_bytes(path.stat().st_size - head.tell(), path.name, max_numbers)


def _check_imports(file: BinaryIO, name: str, *, pickles: int) -> None:
    """Refuse pickles that name anything but what state dicts consist of."""
    for _ in range(pickles):
        encoded = _EncodedBytes()
        for opcode, argument, _place in pickletools.genops(file):
            if opcode.name in _OTHER_IMPORTS or not encoded.takes(opcode.name, argument):
                raise unsafe_pickle(name)
            if opcode.name == "GLOBAL" and argument != _ENCODE and not _is_known(str(argument)):
                raise unsafe_pickle(name)


class _EncodedBytes:
    """Follows the calls of `_codecs.encode` in one pickle, which torch makes for what it is given.

    Bytes, as those of numpy's numbers, are written so that each call has a text of its own and "latin1": what comes of it is no
    larger than the file. Any other use is refused: one text could be encoded a million times, or by a codec that takes hours.
    """

    def __init__(self) -> None:
        self._memo: dict[Any, str] = {}  # of a place: what lies there, where that is one of these
        self._last = ""  # what was put on the stack just now, of the same
        self._awaited: tuple[str, ...] = ()  # the rest of a call

    def takes(self, opcode: str, argument: Any) -> bool:
        """Whether the pickle may go on with this opcode."""
        if opcode.endswith("PUT"):
            self._memo.pop(argument, None)
            if self._last in ("encode", "text latin1", "text 1"):
                self._memo[argument] = self._last
            return True
        if opcode.endswith("GET"):
            self._last = self._memo.get(argument, "")
        else:
            self._last = _kind_of(opcode, argument)
        if self._awaited:
            awaited, *rest = self._awaited
            self._awaited = tuple(rest)
            return self._last.startswith(awaited)
        if self._last == "encode":
            self._awaited = ("text", "text latin1", "TUPLE2", "REDUCE")
        return True


def _kind_of(opcode: str, argument: Any) -> str:
    """What an opcode puts on the stack, or does, as a call of `_codecs.encode` needs it."""
    if opcode == "GLOBAL":
        return "encode" if argument == _ENCODE else ""
    if opcode == "BINUNICODE":
        return "text latin1" if argument == "latin1" else "text 1" if len(argument) == 1 else "text"
    return opcode if opcode in ("TUPLE2", "REDUCE") else ""


def _is_known(name: str) -> bool:
    """Whether state dicts consist of it; a dtype of the module `torch` cannot be called."""
    dtype = vars(import_module("torch")).get(name.removeprefix("torch "))
    state = name in _NAMES or _STORAGE.fullmatch(name) is not None or isinstance(dtype, torch.dtype)
    return state or _is_note(name)


def _is_note(name: str) -> bool:
    """Whether it may stand in the arguments of a training: any name of other libraries, and few of the standard one and torch."""
    package = name.partition(" ")[0].partition(".")[0]
    standard = package in sys.stdlib_module_names or package in IMPORT_MAPPING
    return name in _NOTES or name.startswith("torch.nn.modules.") or not (standard or package == "torch")


class _TrainingNote:
    """Stands for every class of a note: whatever it is called with, an empty dictionary comes of it."""

    def __new__(cls, *_: object) -> OrderedDict[str, object]:  # type: ignore[misc]  # torch fills dictionaries of exactly this type
        return OrderedDict()


class _NumpyNote:
    """Stands for numpy's numbers, arrays and types: whatever they are made of, nothing is kept."""

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass


@contextmanager
def reading_notes_as_nothing(path: Path | io.BytesIO) -> Iterator[bool]:
    """Let `weights_only` read a zip that was checked; tells whether it has objects of classes that are not read."""
    names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    if isinstance(path, io.BytesIO):
        path.seek(0)
    notes: list[Any] = [(_NumpyNote if name.startswith("numpy.") else _TrainingNote, name) for name in names]
    with _reading_notes, torch.serialization.safe_globals(notes):
        yield bool(names)


def _check_bytes(size: int, name: str, max_numbers: int) -> None:
    if size > _BYTES_PER_NUMBER * max_numbers:
        raise UnsafeFile(
            f"{name!r} holds {size / 1e9:,.1f} GB of tensors, more than the {max_numbers / 1e6:,.0f} million parameters "
            "that are loaded here can take; choose a smaller model."
        )


def _too_long(name: str) -> UnsafeFile:
    return UnsafeFile(
        f"{name!r} has a table of contents of more than {MAX_PICKLE_BYTES // 10**6} MB, or is not a checkpoint: it is not read."
    )
