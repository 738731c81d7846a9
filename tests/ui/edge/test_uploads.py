"""Uploaded files: whose they are, how many bytes there may be, and when they are deleted."""

from __future__ import annotations

import io
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from tests.waiting import PATIENCE
from vit_viz.errors import BusyError
from vit_viz.ui.edge import uploads
from vit_viz.ui.edge.uploads import (
    FULL,
    MOST_ARRIVING,
    SHORT_OF_ROOM_SECONDS,
    TOO_MANY_OF_YOURS,
    UNREAD_SECONDS,
    Arrival,
    UploadFiles,
)


class Watched:
    """Files in a folder of the test, and a clock that stands still until it is turned."""

    def __init__(self, folder: Path, *, total: int = 100, each: int = 60) -> None:
        self.folder = folder
        self.now = 5000.0
        self.files = UploadFiles(
            lambda: str(folder), total_bytes=total, visitor_bytes=each, clock=lambda: self.now
        )

    def kept(self, size: int, visitor: str = "ada", name: str = "photo.png") -> str:
        """The path of a whole upload."""
        with self.files.arriving(visitor) as arrival:
            arrival.take(size)
            return self.files.keep(arrival, name, io.BytesIO(bytes(size)))

    @property
    def on_disk(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    one = Watched(tmp_path / "uploads")
    yield one
    assert {str(path) for path in one.on_disk} == set(
        one.files._files
    )  # nothing lies there that is not counted


# --- whose a file is


def test_a_file_is_its_visitor_s_by_exactly_its_path(watched: Watched) -> None:
    path = watched.kept(11)
    assert watched.files.belongs_to(path, "ada")
    assert watched.files.read(path, "ada") == bytes(11)
    place, name = path.rsplit("/", 1)
    others = [
        *(f"{place}/./{name}", f"{place}//{name}", f"{place}/../{place.rsplit('/', 1)[1]}/{name}"),
        *(
            f"{path}/",
            f"/{path}",
            f" {path}",
            path.upper(),
            path[1:],
            f"file://{path}",
            path + "\0",
            place,
            "",
        ),
        *(path.replace("/", "%2F"), path.replace("/", "\\"), f"{place}/other.png"),
    ]
    for form in others:
        assert not watched.files.belongs_to(form, "ada"), form
        assert watched.files.read(form, "ada") is None, form


@pytest.mark.parametrize("visitor", ["bob", "", "ADA", "ad"])
def test_a_file_is_nobody_else_s(watched: Watched, visitor: str) -> None:
    path = watched.kept(11)
    assert not watched.files.belongs_to(path, visitor)
    assert watched.files.read(path, visitor) is None


def test_a_file_beside_it_or_outside_is_nobody_s(watched: Watched, tmp_path: Path) -> None:
    beside = tmp_path / "beside.png"
    beside.write_bytes(b"secret")
    watched.kept(11)
    assert watched.files.read(str(beside), "ada") is None


def test_a_file_that_is_gone_from_the_disk_is_nothing(watched: Watched) -> None:
    path = watched.kept(11)
    Path(path).unlink()
    assert watched.files.read(path, "ada") is None
    watched.now += UNREAD_SECONDS
    watched.files.sweep()


def test_folders_are_unguessable_and_their_own(watched: Watched) -> None:
    places = [Path(watched.kept(3)).parent for _ in range(5)]
    assert len({place.name for place in places}) == 5
    assert all(len(place.name) == 64 and place.parent == watched.folder for place in places)


def test_what_is_written_is_what_came(watched: Watched) -> None:
    content = bytes(range(256)) * 9
    with watched.files.arriving("ada") as arrival:
        path = watched.files.keep(arrival, "a.png", io.BytesIO(content))
    assert Path(path).read_bytes() == content


def test_a_sweep_tells_when_it_deleted_the_last_file(watched: Watched) -> None:
    paths = []
    for name in ("a.png", "b.png"):
        with watched.files.arriving("ada") as arrival:
            paths.append(watched.files.keep(arrival, name, io.BytesIO(b"x")))
    assert not watched.files.sweep()  # nothing was due
    watched.files.delete_after(paths[0], 0)
    assert not watched.files.sweep()  # one is left
    watched.files.delete_after(paths[1], 0)
    assert watched.files.sweep()
    assert watched.on_disk == []
    assert not watched.files.sweep()  # there was none


# --- bytes


def test_bytes_count_while_they_arrive_and_are_free_afterwards(watched: Watched) -> None:
    with watched.files.arriving("ada") as arrival:
        assert watched.files.used_bytes == 0
        arrival.take(13)
        arrival.take(0)
        arrival.take(20)
        assert (arrival.size, watched.files.used_bytes) == (33, 33)
    assert watched.files.used_bytes == 0


def test_an_upload_that_fails_leaves_nothing_counted(watched: Watched) -> None:
    def hang_up() -> None:
        with watched.files.arriving("ada") as arrival:
            arrival.take(13)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        hang_up()
    assert watched.files.used_bytes == 0
    assert watched.on_disk == []


def test_a_kept_file_counts_once_and_by_its_own_size(watched: Watched) -> None:
    with watched.files.arriving("ada") as arrival:
        arrival.take(50)  # with the borders of its parts
        watched.files.keep(arrival, "a.png", io.BytesIO(bytes(41)))
        assert watched.files.used_bytes == 41
    assert watched.files.used_bytes == 41


@pytest.mark.parametrize(("size", "fits"), [(59, True), (60, True), (61, False)])
def test_the_share_of_one_visitor(watched: Watched, size: int, fits: bool) -> None:
    with watched.files.arriving("ada") as arrival, watched.files.arriving("bob") as other:
        arrival.take(40)
        other.take(33)  # another's bytes are no matter
        if fits:
            arrival.take(size - 40)
        else:
            with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
                arrival.take(size - 40)
    assert watched.files.used_bytes == 0


def test_the_share_of_one_visitor_is_over_all_that_is_there_and_arrives(watched: Watched) -> None:
    watched.kept(30)
    with watched.files.arriving("ada") as first, watched.files.arriving("ada") as second:
        first.take(15)
        second.take(15)
        with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
            second.take(1)
    assert watched.files.used_bytes == 30


def test_questions_that_are_under_way_keep_no_upload_out(watched: Watched) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_ARRIVING + 3):
            stack.enter_context(watched.files.arriving("ada", is_upload=False))
        for _ in range(MOST_ARRIVING):
            stack.enter_context(watched.files.arriving("ada"))
        stack.enter_context(watched.files.arriving("ada", is_upload=False))
        with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
            stack.enter_context(watched.files.arriving("ada"))


@pytest.mark.parametrize(("size", "fits"), [(46, True), (47, True), (48, False)])
def test_the_share_of_all(watched: Watched, size: int, fits: bool) -> None:
    watched.kept(53, "bob")
    with watched.files.arriving("ada") as arrival:
        if fits:
            arrival.take(size)
        else:
            with pytest.raises(BusyError, match=FULL):
                arrival.take(size)
    assert watched.files.used_bytes == 53


def test_what_was_refused_is_free_once_its_request_has_ended(watched: Watched) -> None:
    with pytest.raises(BusyError), watched.files.arriving("ada") as arrival:
        arrival.take(61)
    with watched.files.arriving("ada") as arrival:
        arrival.take(60)


# --- failures of the disk


def test_a_disk_that_fills_up_in_the_middle_keeps_nothing(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: IO[bytes], target: IO[bytes], _size: int) -> None:
        target.write(bytes(5))
        target.flush()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space"):
        watched.kept(11)
    assert watched.files.used_bytes == 0
    assert list(watched.folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "uploads").write_bytes(b"a file where the folder should be")
    blocked = Watched(tmp_path / "uploads")
    with pytest.raises(OSError):
        blocked.kept(11)
    assert blocked.files.used_bytes == 0


def test_a_folder_that_cannot_be_deleted_is_one_line_in_the_log(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locked(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    path = watched.kept(11)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", locked)
        watched.now += UNREAD_SECONDS
        watched.files.sweep()
    assert caplog.messages == ["an uploaded file could not be deleted: Permission denied"]
    assert path not in caplog.text
    shutil.rmtree(Path(path).parent)


# --- when files are deleted


def test_a_file_that_nobody_reads_is_deleted_when_it_is_due(watched: Watched) -> None:
    path = watched.kept(11)
    watched.now += 1
    other = watched.kept(13)
    watched.now += UNREAD_SECONDS - 1.5
    watched.files.sweep()
    assert len(watched.on_disk) == 2
    watched.now += 0.5
    watched.files.sweep()
    assert [str(file) for file in watched.on_disk] == [other]
    assert not watched.files.belongs_to(path, "ada")
    assert watched.files.used_bytes == 13
    assert not Path(path).parent.exists()


def test_a_file_that_was_read_goes_sooner(watched: Watched) -> None:
    path = watched.kept(11)
    watched.files.delete_after(path, 10)
    watched.now += 9.5
    watched.files.sweep()
    assert watched.files.belongs_to(path, "ada")
    watched.now += 0.5
    watched.files.sweep()
    assert (watched.on_disk, watched.files.used_bytes) == ([], 0)


def test_only_a_file_that_is_here_can_be_deleted(watched: Watched, tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(b"x")
    watched.files.delete_after(str(outside), -1)
    watched.files.sweep()
    assert outside.exists()


def test_sweeping_twice_is_nothing(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.kept(11)
    watched.now += UNREAD_SECONDS
    watched.files.sweep()
    watched.files.sweep()
    assert caplog.messages == []


def test_short_of_room_a_file_that_waited_long_enough_makes_room(watched: Watched) -> None:
    old = watched.kept(40, "bob")
    watched.now += SHORT_OF_ROOM_SECONDS - 0.5
    young = watched.kept(40, "cid")
    with pytest.raises(BusyError, match=FULL), watched.files.arriving("ada") as arrival:
        arrival.take(21)
    watched.now += 0.5
    with watched.files.arriving("ada") as arrival:
        arrival.take(20)
        assert watched.files.belongs_to(old, "bob")  # there is room still
        arrival.take(1)
        assert not watched.files.belongs_to(old, "bob")
        assert [str(path) for path in watched.on_disk] == [young]


def test_who_has_used_up_the_own_share_drops_no_file_of_others(watched: Watched) -> None:
    other = watched.kept(60, "bob")
    watched.now += SHORT_OF_ROOM_SECONDS
    with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS), watched.files.arriving("ada") as arrival:
        arrival.take(61)
    assert watched.files.belongs_to(other, "bob")


def test_no_more_files_make_room_than_it_takes(watched: Watched) -> None:
    paths = [watched.kept(20, visitor) for visitor in ("bob", "cid", "dee", "eve", "fay")]
    watched.now += SHORT_OF_ROOM_SECONDS
    with watched.files.arriving("ada") as arrival:
        arrival.take(21)
        assert [str(path) in paths[2:] for path in watched.on_disk] == [True] * 3


# --- names


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("photo.png", "photo.png"),
        ("My photo (2).jpeg", "My photo (2).jpeg"),
        ("Größe_日本.webp", "Größe_日本.webp"),
        ("../../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\ada\\a.png", "a.png"),
        ("..\\..\\a.png", "a.png"),
        ("a/b\\c/d.png", "d.png"),
        ("", "picture"),
        (".", "picture"),
        ("..", "picture"),
        ("...", "picture"),
        ("folder/", "picture"),
        ("folder/..", "picture"),
        (" . . ", "picture"),
        ("\0\n\r\t\x1b", "picture"),
        ("\ud800\udfff", "picture"),
        (".htaccess", "htaccess"),
        ("a" + " ." * 150 + "b.png", "b.png"),
        ("a\0.png", "a.png"),
        ("a\n.png", "a.png"),
        ('"><img src=x onerror=alert(1)>.png', "img srcx onerroralert(1).png"),
        ("a?b#c%2fd.png", "abc2fd.png"),
        ("x" * 300 + ".png", "x" * 196 + ".png"),
        ("\u202egnp.exe", "gnp.exe"),
    ],
    ids=ascii,
)
def test_names_are_made_harmless(watched: Watched, name: str, safe: str) -> None:
    path = Path(watched.kept(3, name=name))
    assert path.name == safe
    assert path.parent.parent == watched.folder
    assert path.read_bytes() == bytes(3)


def test_a_name_of_long_characters_fits_the_file_system(watched: Watched) -> None:
    path = Path(watched.kept(3, name="\U00020000" * 300 + ".png"))  # four bytes each
    assert path.suffix == ".png"
    assert set(path.stem) == {"\U00020000"}
    assert path.read_bytes() == bytes(3)


# --- at once


def test_many_uploads_at_once_stay_within_the_bounds(tmp_path: Path) -> None:
    watched, begin = Watched(tmp_path / "uploads", total=1000, each=300), threading.Barrier(9)
    over: list[Any] = []
    ended = threading.Event()

    def upload(visitor: str, ends_well: bool) -> None:
        begin.wait(PATIENCE)
        for _ in range(40):
            try:
                with watched.files.arriving(visitor) as arrival:
                    for _ in range(10):
                        arrival.take(17)
                    if ends_well:
                        path = watched.files.keep(arrival, "a.png", io.BytesIO(bytes(150)))
                        watched.files.delete_after(path, -1)
            except BusyError:
                pass

    def look() -> None:
        begin.wait(PATIENCE)
        while not ended.is_set():
            watched.files.sweep()
            kept = sum(file.size for file in list(watched.files._files.values()))
            over.extend([kept] if kept > 1000 else [])

    looking = threading.Thread(target=look)
    threads = [threading.Thread(target=upload, args=(f"visitor {n % 4}", n % 3 > 0)) for n in range(8)]
    for thread in [looking, *threads]:
        thread.start()
    for thread in threads:
        thread.join(60)
    ended.set()
    looking.join(60)
    watched.files.sweep()
    assert over == []
    assert (watched.files.used_bytes, watched.on_disk) == (0, [])


def test_arrivals_of_many_are_never_together_more_than_the_total(watched: Watched) -> None:
    let_in: list[Arrival] = []
    begin, counted = threading.Barrier(12), threading.Barrier(12)

    def upload(visitor: str) -> None:
        with ExitStack() as stack:
            arrival = stack.enter_context(watched.files.arriving(visitor))
            begin.wait(PATIENCE)
            try:
                arrival.take(30)
                let_in.append(arrival)
            except BusyError:
                stack.close()
            counted.wait(PATIENCE)

    threads = [threading.Thread(target=upload, args=(f"visitor {n}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 1 <= len(let_in) <= 3
    assert watched.files.used_bytes == 0


# --- at a pace


def test_a_large_picture_arrives_at_full_speed_and_a_flood_does_not(tmp_path: Path) -> None:
    now = [50.0]
    files = UploadFiles(lambda: str(tmp_path), clock=lambda: now[0])
    for visitor in ("ada", "bob"):  # each at their own
        with files.arriving(visitor) as first:
            assert first.take(uploads.BURST_BYTES) == 0
        with files.arriving(visitor) as second:
            assert second.take(uploads.BYTES_PER_SECOND * 3) == pytest.approx(3)
    now[0] += 2
    with files.arriving("ada") as third:
        assert third.take(uploads.BYTES_PER_SECOND) == pytest.approx(2)
    now[0] += 1000
    with files.arriving("ada") as fourth:
        assert fourth.take(uploads.BURST_BYTES) == 0


def test_the_pace_of_the_visitor_who_sent_nothing_for_longest_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_MOST_PACED", 3)
    files = UploadFiles(lambda: str(tmp_path), clock=lambda: 50.0)

    def pause(visitor: str, seconds: int) -> float:
        with files.arriving(visitor) as arrival:
            return arrival.take(uploads.BYTES_PER_SECOND * seconds)

    burst = uploads.BURST_BYTES // uploads.BYTES_PER_SECOND
    for visitor in ("ada", "bob", "cyd"):
        assert pause(visitor, burst) == 0
    assert pause("ada", 1) == pytest.approx(1)  # three are remembered
    assert pause("dan", burst) == 0  # a fourth takes the place of bob, who was quiet for longest
    assert [pause(visitor, 2) for visitor in ("ada", "cyd", "dan", "bob")] == pytest.approx([3, 2, 2, 0])


def test_one_visitor_sends_two_pictures_at_a_time_at_most(tmp_path: Path) -> None:
    files = UploadFiles(lambda: str(tmp_path))
    with files.arriving("ada"), files.arriving("ada"):
        with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS), files.arriving("ada"):
            pass
        with files.arriving("bob"):
            pass
    with files.arriving("ada"):
        pass
