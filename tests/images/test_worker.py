"""Pictures decoded in a process of their own: the same pictures and sentences, and no file costs more than that process."""

from __future__ import annotations

import gc
import io
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.images.image_files import png
from tests.images.test_memory import LARGEST, picture as large_picture
from tests.images.test_reading import FOREIGN, WRITABLE, claims, encoded, orientations, picture
from tests.waiting import PATIENCE, until
from vit_viz.errors import BusyError, Cancelled, ImageError
from vit_viz.images import DecoderProcess, decode
from vit_viz.images.decoder import _end, _read_answer
from vit_viz.images.worker import BAND_BYTES, MAX_HEADER_BYTES, bands
from vit_viz.turns import GONE, Turns

ROOT = Path(__file__).resolve().parents[2]
HOOK = "tests.images.failing_decoders:decode_or_fail"
GOOD = encoded(picture(23, 37), "PNG")

DAMAGED = "This PNG is damaged or of an unusual kind; please open it in an image program and save it as PNG or JPEG."
TOO_LONG = "This PNG takes too long to read; please save it again with usual settings."
NOT_NOW = "Pictures cannot be read at the moment; please try again in a minute."
TOO_LARGE = "This PNG needs too much memory; please make it smaller."

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is bounded on Linux only")


@pytest.fixture(scope="module")
def decoder() -> Iterator[DecoderProcess]:
    """The decoder of the app, shared by the tests that do it no harm."""
    decoder = DecoderProcess()
    yield decoder
    decoder.close()


@pytest.fixture
def failing() -> Iterator[Callable[..., DecoderProcess]]:
    """Makes decoders whose process does what the picture says; see `failing_decoders`."""
    made: list[DecoderProcess] = []

    def make(**options: object) -> DecoderProcess:
        made.append(DecoderProcess(function=HOOK, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.close()


def outcome(read: Callable[..., Image.Image], source: object, **limits: float) -> object:
    """Everything that can be seen of a picture, or the sentence of its refusal."""
    try:
        result = read(source, **limits)
    except ImageError as error:
        return str(error)
    return result.mode, result.size, result.tobytes(), result.info


def refusal(decoder: DecoderProcess, source: object) -> str:
    with pytest.raises(ImageError) as caught:
        decoder.decode(source)  # type: ignore[arg-type]
    assert caught.value.__cause__ is None
    return str(caught.value)


def has_ended(pid: int) -> bool:
    """Whether there is no such process, or only what nobody has collected of it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


def odd_files() -> dict[str, bytes]:
    """One file of every kind, whole, cut, and with a claim; other files; and pictures that are turned or reduced."""
    files = {f"{kind} whole": encoded(picture(31, 47), kind) for kind in WRITABLE}
    files |= {f"{kind} cut": data[: len(data) // 2] for kind, data in encoded_kinds().items()}
    files |= {f"{kind} start": data[:16] for kind, data in encoded_kinds().items()}
    files |= {f"{kind} claim": claims(kind, 13000, 11000) for kind in WRITABLE}
    files |= FOREIGN
    exif = Image.Exif()
    for orientation in orientations():
        exif[274] = orientation
        files[f"turned {orientation}"] = encoded(picture(12, 20), "PNG", exif=exif)
    files["reduced"] = encoded(Image.linear_gradient("L").resize((5000, 3400)), "JPEG", exif=exif)
    files |= {"empty": b"", "thin": encoded(Image.new("RGB", (1, 50)), "PNG")}
    files |= {"long": encoded(Image.new("RGB", (420, 20)), "PNG"), "deep": deep_png()}
    return files | {"transparent": encoded(Image.new("RGBA", (30, 20), (9, 80, 200, 99)), "WEBP")}


def encoded_kinds() -> dict[str, bytes]:
    return {kind: encoded(picture(40, 60), kind) for kind in WRITABLE}


def deep_png() -> bytes:
    values = np.random.default_rng(1).integers(0, 2**16, (5, 8, 3)).astype(np.uint16)
    return png(values, colour=2, depth=16)


ODD_FILES = odd_files()


@pytest.mark.parametrize("name", ODD_FILES)
def test_a_picture_or_its_refusal_is_that_of_decode(name: str, decoder: DecoderProcess) -> None:
    data = ODD_FILES[name]
    assert outcome(decoder.decode, data) == outcome(decode, data)


def test_the_odd_files_are_pictures_and_refusals(decoder: DecoderProcess) -> None:
    outcomes = {name: outcome(decoder.decode, data) for name, data in ODD_FILES.items()}
    assert 15 < len([one for one in outcomes.values() if isinstance(one, tuple)]) < len(outcomes) - 30
    reduced = outcomes["reduced"]
    assert isinstance(reduced, tuple)
    assert reduced[1] == (1700, 2500)  # orientation 8
    assert reduced[3] == {"reduced_from": (5000, 3400)}


@pytest.mark.slow
def test_published_odd_files_are_read_and_refused_as_by_decode(
    shared_data: Path, decoder: DecoderProcess
) -> None:
    files = [path for path in sorted((shared_data / "odd_images").rglob("*")) if path.is_file()]
    assert len(files) > 300
    different = [path.name for path in files if outcome(decoder.decode, path) != outcome(decode, path)]
    assert different == []


@pytest.mark.parametrize("limit", ["max_bytes", "max_pixels", "max_aspect"])
def test_the_limits_are_parameters_here_too(limit: str, decoder: DecoderProcess) -> None:
    most = {"max_bytes": len(GOOD), "max_pixels": 23 * 37, "max_aspect": 37 / 23}[limit]
    assert outcome(decoder.decode, GOOD, **{limit: most}) == outcome(decode, GOOD)
    less = most - (0.01 if limit == "max_aspect" else 1)
    assert isinstance(outcome(decoder.decode, GOOD, **{limit: less}), str)
    assert outcome(decoder.decode, GOOD, **{limit: less}) == outcome(decode, GOOD, **{limit: less})


def test_paths_are_read_and_refused_as_by_decode(tmp_path: Path, decoder: DecoderProcess) -> None:
    (tmp_path / "a.txt").write_bytes(GOOD)
    file = tmp_path / "a.txt"
    for source in (file, str(file), tmp_path, tmp_path / "absent.png", "a\0b", 3, None):
        assert outcome(decoder.decode, source) == outcome(decode, source)


def test_a_pil_image_is_decoded_here() -> None:
    alone = DecoderProcess()
    source = Image.new("RGBA", (9, 5), (10, 200, 30, 40))
    assert alone.decode(source) == decode(source)
    assert alone.pid is None


@pytest.mark.parametrize("size", [(BAND_BYTES // 3 + 5, 2), (700, 1531), (2, 3), (1, 1)])
def test_bands_cover_each_row_once(size: tuple[int, int]) -> None:
    width, height = size
    rows = [row for top, bottom in bands(width, height) for row in range(top, bottom)]
    assert rows == list(range(height))
    assert all(
        3 * width * (bottom - top) <= max(BAND_BYTES, 3 * width) for top, bottom in bands(width, height)
    )


def test_a_picture_of_several_bands_keeps_its_rows_in_place(decoder: DecoderProcess) -> None:
    several = picture(1531, 703)
    assert len(list(bands(703, 1531))) > 2
    assert decoder.decode(encoded(several, "BMP")) == several


@pytest.mark.parametrize(
    ("what", "sentence"),
    [*((what, DAMAGED) for what in (b"segfault", b"exit 0", b"exit 3", b"raise")), (b"kill", TOO_LARGE)],
)
def test_a_crash_costs_one_process(
    what: bytes, sentence: str, failing: Callable[..., DecoderProcess], capfd: pytest.CaptureFixture[str]
) -> None:
    decoder = failing()
    decoder.decode(GOOD)
    first = decoder.pid
    assert first is not None
    assert refusal(decoder, GOOD + what) == sentence
    assert decoder.pid not in (None, first)  # started already, so that the next picture need not wait for it
    assert decoder.decode(GOOD) == decode(GOOD)
    with pytest.raises(ChildProcessError):  # it is gone, and no zombie stays of it
        os.waitpid(first, os.WNOHANG)
    assert capfd.readouterr() == ("", "")


def test_a_decoder_that_never_ends_is_ended(failing: Callable[..., DecoderProcess]) -> None:
    decoder = failing(max_seconds=0.3)
    decoder.start()
    first = decoder.pid
    assert refusal(decoder, GOOD + b"sleep") == TOO_LONG
    assert first is not None
    assert has_ended(first)
    decoder.max_seconds = 600
    assert decoder.decode(GOOD) == decode(GOOD)


def test_a_picture_that_nobody_waits_for_any_more_is_given_up(failing: Callable[..., DecoderProcess]) -> None:
    """Who hangs up, or gives way to others, does not keep the decoder; the next picture has a process of its own."""
    decoder, is_waiting = failing(max_seconds=3600), iter([True] * 3)
    token = GONE.set(lambda: not next(is_waiting, False))
    try:
        with pytest.raises(Cancelled):
            decoder.decode(GOOD + b"sleep")
    finally:
        GONE.reset(token)
    assert decoder.decode(GOOD) == decode(GOOD)


@linux
def test_memory_is_bounded(failing: Callable[..., DecoderProcess]) -> None:
    decoder = failing(memory_bytes=96 * 2**20)
    assert decoder.decode(GOOD + b"allocate 60000000") == decode(GOOD)
    first = decoder.pid
    assert refusal(decoder, GOOD + b"allocate 110000000") == TOO_LARGE
    assert decoder.pid not in (None, first)  # what the memory of the first is like now, nobody knows
    assert decoder.decode(GOOD) == decode(GOOD)


@pytest.mark.slow
@linux
@pytest.mark.parametrize("kind", WRITABLE)
def test_a_picture_for_which_memory_is_missing_is_told_so(kind: str) -> None:
    decoder = DecoderProcess(memory_bytes=12 * 2**20)
    decoder.start()
    first = decoder.pid
    told = refusal(decoder, encoded(Image.linear_gradient("L").convert("RGB").resize((2400, 1600)), kind))
    if kind in ("WEBP", "AVIF"):  # their libraries say only that it failed
        assert told.startswith("This ")
    else:
        assert told == TOO_LARGE.replace("PNG", kind)
        assert decoder.pid != first
    assert decoder.decode(GOOD) == decode(GOOD)
    decoder.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGEST)
def test_the_largest_picture_of_a_kind_fits_the_limits(kind: str, decoder: DecoderProcess) -> None:
    megapixels, mode, options = LARGEST[kind]
    file = io.BytesIO()
    large_picture(megapixels, mode).save(file, kind.split()[-1], **options)  # type: ignore[arg-type]
    result = decoder.decode(file.getvalue())
    assert result.width * result.height > min(megapixels / 4, 6) * 0.95e6


def test_a_process_that_ended_while_idle_costs_no_picture(decoder: DecoderProcess) -> None:
    decoder.decode(GOOD)
    first = decoder.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: has_ended(first))
    assert decoder.decode(GOOD) == decode(GOOD)
    assert decoder.pid != first


def test_a_process_follows_after_some_pictures(failing: Callable[..., DecoderProcess]) -> None:
    decoder = failing(pictures_per_process=2)
    seen = []
    for _ in range(5):
        decoder.start()
        seen.append(decoder.pid)
        decoder.decode(GOOD)
    a, b, c = dict.fromkeys(seen)
    assert seen == [a, a, b, b, c]


class SlowToEnd:
    """A process that the system takes a while to end."""

    def __init__(self) -> None:
        self.stdin = self.stdout = io.BytesIO()
        self.collected = threading.Event()

    def kill(self) -> None:
        """Ask for its end."""

    def wait(self, timeout: float | None = None) -> None:
        """Be there still for who waits a while; for who waits on, be gone."""
        if timeout is not None:
            raise subprocess.TimeoutExpired("worker", timeout)
        self.collected.set()


def test_the_status_of_a_process_that_is_slow_to_end_is_collected_all_the_same() -> None:
    """Or else Python warns of a process that it lost, and the system keeps it as a zombie."""
    process = SlowToEnd()
    _end(process, threading.Lock())  # type: ignore[arg-type]
    assert process.collected.wait(PATIENCE)


def test_a_process_that_is_slow_to_end_with_python_itself_has_its_pipes_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.12 and later begin no thread while they end."""

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    process = SlowToEnd()
    _end(process, threading.Lock())  # type: ignore[arg-type]
    assert process.stdin.closed


def test_what_libraries_write_is_one_line_of_the_log(
    failing: Callable[..., DecoderProcess],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    decoder = failing()
    with caplog.at_level(logging.INFO, "vit_viz"):
        assert decoder.decode(GOOD + b"write 3") == decode(GOOD)
        assert decoder.decode(GOOD) == decode(GOOD)
        assert decoder.decode(GOOD + b"write 100000") == decode(GOOD)
    messages = [record.getMessage() for record in caplog.records if "lines" in record.getMessage()]
    assert messages[0] == "the libraries wrote 3 lines or more about a PNG"
    assert len(messages) == 2
    assert len(messages[1]) < 80
    assert capfd.readouterr() == ("", "")


def tiff_with_private_tags(count: int) -> bytes:
    """A gray picture whose TIFF holds tags of a type that does not exist: libtiff complains of each twice."""
    size, pixels = (16, 16), zlib.compress(bytes(range(256)))
    entries = [(256, 4, size[0]), (257, 4, size[1]), (258, 3, 8), (259, 3, 8), (262, 3, 1), (277, 3, 1)]
    entries += [(278, 4, size[1]), (279, 4, len(pixels))]
    entries += [(51_000 + i, 99, i) for i in range(count)]
    at = 8 + 2 + 12 * (len(entries) + 1) + 4
    directory = b"".join(
        tag.to_bytes(2, "little") + kind.to_bytes(2, "little") + b"\1\0\0\0" + value.to_bytes(4, "little")
        for tag, kind, value in sorted([*entries, (273, 4, at)])
    )
    count_of_entries = (len(entries) + 1).to_bytes(2, "little")
    return b"II*\0\x08\0\0\0" + count_of_entries + directory + b"\0\0\0\0" + pixels


def test_a_decoder_that_is_forgotten_ends_its_process() -> None:
    forgotten = DecoderProcess()
    forgotten.decode(GOOD)
    pid = forgotten.pid
    assert pid is not None
    del forgotten
    gc.collect()
    assert has_ended(pid)


PARENT = """
import contextlib, sys, threading
from vit_viz.images import DecoderProcess
def work():
    with contextlib.suppress(Exception):
        decoder.decode({good!r} + {what!r})
decoder = DecoderProcess(function={hook!r}, max_seconds={seconds})
decoder.decode({good!r})
print(decoder.pid, flush=True)
sys.stdin.readline()
threading.Thread(target=work, daemon=True).start()
sys.stdin.readline()
"""


@pytest.fixture
def parent() -> Iterator[Callable[[bytes], tuple[subprocess.Popen[str], int]]]:
    """Starts another process with a decoder, which decodes a second picture when it is told."""
    started: list[subprocess.Popen[str]] = []

    def start(what: bytes) -> tuple[subprocess.Popen[str], int]:
        code = PARENT.format(hook=HOOK, seconds=1.0, good=GOOD, what=what)
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_process_ends_when_its_parent_is_killed(
    parent: Callable[[bytes], tuple[subprocess.Popen[str], int]],
) -> None:
    process, pid = parent(b"")
    assert not has_ended(pid)
    process.kill()
    until(lambda: has_ended(pid))


@pytest.mark.slow
def test_the_process_ends_after_its_parent_was_killed_while_it_decodes_without_end(
    parent: Callable[[bytes], tuple[subprocess.Popen[str], int]],
) -> None:
    process, pid = parent(b"sleep")
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(0.5)  # until it decodes; if it does not yet, it ends all the sooner
    process.kill()
    until(lambda: has_ended(pid))


@pytest.mark.parametrize("what", [b"", b"sleep"], ids=["idle", "busy"])
def test_the_process_ends_with_its_parent_and_nothing_is_said(
    what: bytes, parent: Callable[[bytes], tuple[subprocess.Popen[str], int]]
) -> None:
    process, pid = parent(what)
    assert process.communicate("\n\n")[1] == ""
    assert process.returncode == 0
    until(lambda: has_ended(pid))


def test_threads_get_their_own_pictures_from_one_process(decoder: DecoderProcess) -> None:
    decoder.decode(GOOD)
    first = decoder.pid
    images = [Image.new("RGB", (50 + i, 40), (i, 2 * i, 3 * i)) for i in range(12)]
    files = [encoded(image, "PNG") for image in images]
    right: list[int] = []

    def work(i: int) -> None:
        right.extend(i for _ in range(4) if decoder.decode(files[i]) == images[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(files))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(right) == sorted(4 * [*range(12)])
    assert decoder.pid == first


def decoding(decoder: DecoderProcess, what: bytes) -> tuple[threading.Thread, list[str]]:
    """A thread that decodes, once it is at it, and what it is told."""
    said: list[str] = []

    def work() -> None:
        said.append(refusal(decoder, GOOD + what))

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: decoder.turns._queues != {} and decoder.pid is not None)
    return thread, said


def test_who_would_wait_too_long_is_told_so(failing: Callable[..., DecoderProcess]) -> None:
    decoder = failing(turns=Turns(max_waiting=0))
    thread, said = decoding(decoder, b"sleep")
    with pytest.raises(BusyError, match="busy"):
        decoder.decode(GOOD)
    decoder.close()
    thread.join()
    assert said == [NOT_NOW]


def test_closing_ends_a_picture_that_is_being_decoded(failing: Callable[..., DecoderProcess]) -> None:
    decoder = failing()
    decoder.decode(GOOD)
    first = decoder.pid
    assert first is not None
    thread, said = decoding(decoder, b"sleep")
    decoder.close()
    thread.join()
    assert said == [NOT_NOW]
    assert has_ended(first)
    assert decoder.pid is None
    assert decoder.decode(GOOD) == decode(GOOD)


def test_a_process_that_cannot_start_is_no_fault_of_the_picture(capfd: pytest.CaptureFixture[str]) -> None:
    decoder = DecoderProcess(function="tests.images.failing_decoders:no_such_function")
    assert refusal(decoder, GOOD) == NOT_NOW
    decoder.close()
    assert "no_such_function" in capfd.readouterr().err  # the owner is told why


def test_the_process_knows_no_secret_and_imports_nothing_large(
    failing: Callable[..., DecoderProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr("vit_viz.images.decoder._MAX_SENTENCE", 10**6)
    told = refusal(failing(), GOOD + b"tell")
    assert "'PATH'" in told
    assert "'PIL.PngImagePlugin'" in told
    assert [name for name in ("HF_TOKEN", "'torch'", "'gradio'", "'app'", "'pytest'") if name in told] == []


def message(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(4, "big") + text + data


PICTURE = {"size": [3, 2], "reduced_from": None, "lines": 0}
UNBELIEVABLE = {
    "nothing": b"",
    "half a length": b"\0\0",
    "a header that is cut": message(PICTURE)[:-3],
    "a very long header": message({**PICTURE, "more": "x" * MAX_HEADER_BYTES}, bytes(18)),
    "no JSON": b"\0\0\0\3abc",
    "no text": b"\0\0\0\3\xff\xfe\xfd",
    "no object": message([1, 2]),
    "very deep": b"\0\0\xff\0" + 0xFF00 * b"[",
    "neither": message({"lines": 0}),
    "a sentence that is none": message({"error": 3, "lines": 0}),
    "pixels that end too early": message(PICTURE, bytes(17)),
    "too many pixels": message({**PICTURE, "size": [5, 5]}, bytes(75)),
    "a negative size": message({**PICTURE, "size": [-3, -2]}, bytes(18)),
    "no rows": message({**PICTURE, "size": [3, 0]}),
    "half pixels": message({**PICTURE, "size": [3.0, 2]}, bytes(18)),
    "one side": message({**PICTURE, "size": [3]}, bytes(18)),
}


@pytest.mark.parametrize("what", UNBELIEVABLE)
def test_an_answer_that_cannot_be_believed_is_none(what: str) -> None:
    with pytest.raises((EOFError, ValueError, RecursionError)):
        _read_answer(io.BytesIO(UNBELIEVABLE[what]), 24)


def test_an_answer_that_can_be_believed_is_taken() -> None:
    pixels = bytes(range(18))
    answer = _read_answer(io.BytesIO(message({**PICTURE, "reduced_from": [9, 7]}, pixels)), 6)
    assert answer.picture is not None
    assert (answer.picture.tobytes(), answer.picture.info) == (pixels, {"reduced_from": (9, 7)})
    refused = _read_answer(io.BytesIO(message({"error": "No." * 999, "lines": 7})), 6)
    assert refused.picture is None
    assert (refused.sentence[:3], len(refused.sentence), refused.lines) == ("No.", 400, 7)


def test_a_tiff_of_many_private_tags_writes_nothing(
    decoder: DecoderProcess, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tiff_with_private_tags(4000)
    assert len(data) < 49_000
    with caplog.at_level(logging.INFO, "vit_viz"):
        assert decoder.decode(data).size == (16, 16)
    assert len(caplog.records) == 1
    assert capfd.readouterr() == ("", "")
    decode(data)
    assert capfd.readouterr().err.count("\n") > 4000  # what it would have written
