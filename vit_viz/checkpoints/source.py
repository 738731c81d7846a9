"""Where a model comes from: the bundled file, a local file or folder, or the Hub. The only module that may open the network."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from vit_viz.bundled import bundled_file
from vit_viz.checkpoints.catalog import BUNDLED, CATALOG, Entry, entry_of
from vit_viz.checkpoints.families import refuse_unknown
from vit_viz.checkpoints.local import (
    SETTINGS_FILES,
    TOKENIZER_FILES,
    Source,
    check_declared,
    json_limit,
    local_checkpoint,
    read_settings,
)
from vit_viz.checkpoints.visitor_models import repository_folder, visitor_model_cache
from vit_viz.checkpoints.weights import MAX_NUMBERS, SUFFIXES, hash_file
from vit_viz.errors import Cancelled, CheckpointError
from vit_viz.progress import StopCheck

Progress = Callable[[int, int], None]
"""Called with (bytes fetched, bytes in all; 0 where unknown) while a file is downloaded."""

MAX_VISITORS_BYTES = 2_000_000_000
"""Bytes that a model which a visitor names may take as fp32 (ViT-L: 1.2): it shares the process with everybody's pictures."""

_logger = logging.getLogger(__name__)
_MAX_BYTES = 32_000_000_000
_WEIGHTS = "model.safetensors"
_ANSWER_SECONDS = 10.0
_CLIENTS = ("httpx", "httpx2", "httpcore")  # whose errors differ between versions of huggingface_hub
_ATTEMPTS = 3  # each goes on where the one before it was cut
_PART = r"[A-Za-z0-9](?:[\w.-]{0,94}[\w])?"
_HUB_ID = re.compile(
    rf"(?!.*(?:\.\.|--)){_PART}/(?!.*\.git(?:@|$)){_PART}(?:@{_PART}(?:/{_PART}){{0,3}})?", re.ASCII
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ETAG = re.compile(r"[\w-]{1,128}", re.ASCII)


def max_numbers(*, is_visitors: bool) -> int:
    """Parameters that a model may have, after who named it."""
    return MAX_VISITORS_BYTES // 4 if is_visitors else MAX_NUMBERS


def is_hub_id(text: str) -> bool:
    """Whether a text has the form of a Hub id, "owner/name" or "owner/name@revision"; it need not exist."""
    return _HUB_ID.fullmatch(text) is not None


def find(
    ref: str | Path,
    *,
    local_files: bool = True,
    fetch: bool = True,
    use_token: bool | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> Source:
    """The checkpoint that a reference means, fetched where it is not here yet.

    Args:
        ref: "mini", a name of the catalog, a path of a file or a folder, or a Hub id with or without "@revision".
        local_files: whether paths count; False for references that come from a browser. Those are held to `MAX_VISITORS_BYTES`,
            unless they are models of the catalog as it names them: a revision may hold what anybody proposed.
        fetch: whether the Hub may be asked; False takes what is on this machine.
        use_token: whether the owner's Hub token may be sent; None means for models of the catalog only.
        progress: told about the download of the weights.
        cancelled: asked during a download.
    """
    here = on_this_machine(ref, local_files=local_files)
    if here is not None:
        return here
    text = str(ref)
    repo, _, revision = text.partition("@")
    entry = entry_of(repo) if local_files or not revision else None
    return _Hub(
        repo=entry.hub_id if entry else repo,
        revision=revision or "main",
        entry=entry,
        token=None if (entry is not None if use_token is None else use_token) else False,
        is_visitors=entry is None and not local_files,
        is_local_only=not fetch,
        progress=progress,
        cancelled=cancelled,
    ).fetch()


def on_this_machine(ref: str | Path, *, local_files: bool = True) -> Source | None:
    """The checkpoint that is bundled or lies at a path; None where the reference is one of the Hub, which is not asked."""
    text = str(ref)
    if text in BUNDLED:
        path = bundled_file(f"{text}.safetensors")
        if not path.is_file():
            raise CheckpointError(
                f"The bundled model {text!r} is not in this installation: assets/{path.name} is missing."
            )
        return Source(text, path, "bundled with vit_viz")
    repo, _, revision = text.partition("@")
    entry = entry_of(repo) if local_files or not revision else None
    if entry is None and local_files and (local := local_checkpoint(ref)) is not None:
        return local
    is_file = (
        local_files and Path(text).suffix.lower() in SUFFIXES
    )  # "folder/file.pth" has the form of a Hub id
    if (is_hub_id(text) and not is_file) or (entry is not None and is_hub_id(f"a/{text}")):
        return None
    expected = "a checkpoint file, a folder with config.json, or a Hub id" if local_files else "or a Hub id"
    names = ", ".join([*BUNDLED, *(model.name for model in CATALOG)])
    # visitors read this too, and the owner's folders are not theirs to know
    shown = text if is_hub_id(text) and not is_file else Path(text).name
    raise CheckpointError(f"There is no model {shown[:120]!r}: expected {names}, {expected}.")


def is_on_disk(ref: str) -> bool:
    """Whether the weights of a name of the catalog or of a Hub id are in huggingface_hub's cache; asks nobody."""
    repo, _, revision = ref.partition("@")
    entry = entry_of(repo)
    return kept_file(entry.hub_id if entry else repo, _WEIGHTS, revision=revision or "main") is not None


def kept_file(repo: str, filename: str, *, revision: str = "main") -> Path | None:
    """A file of a repository in huggingface_hub's cache; None where it is not there. Asks nobody."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(repo, filename, revision=revision) if is_hub_id(repo) else None
    return Path(path) if isinstance(path, str) else None


def announced_bytes(ref: str) -> int | None:
    """Bytes of the weights that a visitor's Hub id would download, as the Hub announces them; None where it does not say."""
    repo, _, revision = ref.partition("@")
    return _Hub(repo, revision or "main", entry=None, token=False, is_visitors=True).announced()


@dataclass(frozen=True)
class _Hub:
    """One fetch from the Hub: every file at the same commit, sizes asked first, hashes compared, errors in one sentence each.

    Args:
        token: None sends the owner's token where there is one, False sends none.
        is_local_only: whether only what was fetched before counts.
    """

    repo: str
    revision: str
    entry: Entry | None
    token: bool | None
    is_visitors: bool
    is_local_only: bool = False
    progress: Progress | None = None
    cancelled: StopCheck | None = None

    def fetch(self) -> Source:
        """Configuration first, so that a model that is not a ViT is refused before its weights are fetched."""
        with _errors_in_words(self.repo, self.revision), visitor_model_cache().in_use(self.repo):
            offline = self.is_local_only or self._unreachable()
            config = self._optional("config.json", self.revision, offline)
            commit = config.parent.name if config is not None else self.revision
            settings = read_settings(
                config, *(self._optional(name, commit, offline) for name in SETTINGS_FILES[1:])
            )
            refuse_unknown(settings, self.repo)
            check_declared(settings, self.repo, max_numbers=max_numbers(is_visitors=self.is_visitors))
            if self.entry is not None:
                settings.setdefault("pretrained_cfg", self.entry.settings)
            weights = self._weights(commit, offline)
            if settings.get("model_type") in ("clip", "siglip"):  # whose sentences need what lies beside them
                with suppress(CheckpointError):  # pictures do not
                    for name in TOKENIZER_FILES:
                        self._optional(name, weights.parent.name, offline)
        return Source(
            name=self.entry.name if self.entry is not None else self.repo,
            weights=weights,
            origin=f"{self.repo} on the Hub at {weights.parent.name[:7]}",
            settings={"architecture": self.repo, **settings, "hub_id": self.repo},
            is_visitors=self.is_visitors,
        )

    def announced(self) -> int | None:
        """Bytes of the weights, before any of them is fetched."""
        import huggingface_hub
        from huggingface_hub import errors

        url = huggingface_hub.hf_hub_url(self.repo, _WEIGHTS, revision=self.revision)
        with _errors_in_words(self.repo, self.revision):
            if self._unreachable():
                raise errors.LocalEntryNotFoundError("the Hub does not answer")
            try:
                size = huggingface_hub.get_hf_file_metadata(
                    url, token=self.token, timeout=_ANSWER_SECONDS
                ).size
            except errors.EntryNotFoundError as error:
                raise self._without_weights() from error
            if size is not None:
                self._check_size(_WEIGHTS, size)
        return size

    def _unreachable(self) -> bool:
        """Whether only the cache can answer; one short question instead of a minute of retries."""
        import huggingface_hub
        from huggingface_hub import errors

        url = huggingface_hub.hf_hub_url(self.repo, "config.json", revision=self.revision)
        try:
            huggingface_hub.get_hf_file_metadata(url, token=self.token, timeout=_ANSWER_SECONDS)
        except errors.EntryNotFoundError:
            return False
        except errors.HfHubHTTPError as error:
            status = getattr(error.response, "status_code", 0)
            if status >= 500:
                return True
            raise
        except errors.FileMetadataError:
            raise
        except Exception as error:  # HF_HUB_OFFLINE, or the transport's own, which differ between versions
            _logger.info("the Hub cannot be reached: %s", error)
            return True
        return False

    def _weights(self, commit: str, offline: bool) -> Path:
        from huggingface_hub import errors

        try:
            path = self._file(_WEIGHTS, commit, offline)
        except errors.LocalEntryNotFoundError:
            raise
        except errors.EntryNotFoundError as error:
            raise self._without_weights() from error
        # the cache names the blob of a large file by the SHA-256 that the Hub announced
        announced = Path(os.readlink(path)).name if path.is_symlink() else path.name
        if _SHA256.fullmatch(announced) and hash_file(path) != announced:
            visitor_model_cache().forget(path)
            raise CheckpointError(
                f"The weights of {self.repo!r} arrived damaged (another SHA-256 than announced) and were deleted; try again."
            )
        return path

    def _without_weights(self) -> CheckpointError:
        return CheckpointError(
            f"{self.repo!r} has no model.safetensors; other formats can run code and are not fetched; convert it and load that."
        )

    def _optional(self, filename: str, revision: str, offline: bool) -> Path | None:
        from huggingface_hub import errors

        try:
            return self._file(filename, revision, offline)
        except errors.EntryNotFoundError as error:
            if isinstance(error, errors.LocalEntryNotFoundError) and not offline:
                raise
            return None

    def _file(self, filename: str, revision: str, offline: bool) -> Path:
        """A file in huggingface_hub's cache, brought there where it is not."""
        import huggingface_hub

        if not offline:  # from here on at one commit: a branch may move while a file arrives
            revision = self._bring(filename, revision)
        path = Path(
            huggingface_hub.hf_hub_download(
                self.repo, filename, revision=revision, token=self.token, local_files_only=offline
            )
        )
        visitor_model_cache().note_use(path, is_visitors=self.is_visitors)
        self._check_size(filename, os.path.getsize(path))
        return path

    def _bring(self, filename: str, revision: str) -> str:
        """Download a file into the cache, of a size that was asked first, and until told to stop; returns its commit."""
        import huggingface_hub
        from huggingface_hub import constants, try_to_load_from_cache

        if _is_commit(revision) and isinstance(
            try_to_load_from_cache(self.repo, filename, revision=revision), str
        ):
            return revision
        url = huggingface_hub.hf_hub_url(self.repo, filename, revision=revision)
        announced = huggingface_hub.get_hf_file_metadata(url, token=self.token, timeout=_ANSWER_SECONDS)
        if announced.size is not None:
            self._check_size(filename, announced.size)
        etag, commit = announced.etag or "", announced.commit_hash or ""
        if not (_ETAG.fullmatch(etag) and _is_commit(commit)):
            raise OSError("the answer names no file at a commit")
        folder = Path(constants.HF_HUB_CACHE) / repository_folder(self.repo)
        if not (folder / "blobs" / etag).exists():
            self._download(filename, commit, folder / "blobs" / etag, announced.size)
        if revision != commit:  # where huggingface_hub looks when it is offline
            (folder / "refs" / revision).parent.mkdir(parents=True, exist_ok=True)
            (folder / "refs" / revision).write_text(commit)
        return commit

    def _download(self, filename: str, commit: str, blob: Path, size: int | None) -> None:
        """Write a file into the cache, for which room is made there.

        Not by hf_hub_download and its `tqdm_class`: what hf_xet fetches for it goes on when the progress callback raises
        (huggingface_hub issue 4632), so that it could neither be cancelled nor be bounded while it arrives; over HTTP it asks the
        callback every 10 MB only, and a cut connection loses them. And a visitor's file must have its mark before its name.
        """
        import huggingface_hub

        models, is_visitors = visitor_model_cache(), self.is_visitors
        cache = blob.parents[2]
        cache.mkdir(parents=True, exist_ok=True)
        # where the Hub does not say how many bytes come, a visitor's file may be the largest; the owner's are not bounded so
        largest = MAX_VISITORS_BYTES if filename == _WEIGHTS else json_limit(filename)[1]
        needed = size if size is not None else largest if is_visitors else 0
        with models.room(cache, needed, name=self.repo, is_visitors=is_visitors):
            part = models.part(blob, is_visitors=is_visitors)
            try:
                with part.open("wb") as file:
                    url = huggingface_hub.hf_hub_url(self.repo, filename, revision=commit)
                    self._stream(url, file, filename, size)
                models.keep(part, blob, is_visitors=is_visitors)
            finally:
                part.unlink(missing_ok=True)

    def _stream(self, url: str, file: BinaryIO, filename: str, size: int | None) -> None:
        """Write what an address answers; a cut connection is taken up again where it ended, as long as bytes arrive."""
        for attempt in range(1, _ATTEMPTS + 1):
            start = file.tell()
            try:
                self._receive(url, file, filename, size)
                break
            except Exception as error:
                if not _is_transport(error) or attempt == _ATTEMPTS or file.tell() <= start:
                    raise
                _logger.info("fetching %s goes on at byte %d: %s", self.repo, file.tell(), error)
        if size is not None and file.tell() != size:
            raise OSError(f"{file.tell()} bytes arrived instead of {size}")

    def _receive(self, url: str, file: BinaryIO, filename: str, size: int | None) -> None:
        import huggingface_hub
        from huggingface_hub import constants
        from huggingface_hub.utils import (  # type: ignore[attr-defined]  # documented, not re-exported in so many words
            build_hf_headers,
            hf_raise_for_status,
        )

        headers = build_hf_headers(token=self.token) | {"Accept-Encoding": "identity"}
        if start := file.tell():
            headers["Range"] = f"bytes={start}-"
        with huggingface_hub.get_session().stream(
            "GET", url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT, follow_redirects=True
        ) as response:
            if response.status_code >= 400:
                response.read()
                hf_raise_for_status(response)
            if start and response.status_code != 206:  # the whole file again
                file.seek(0)
                file.truncate()
            for chunk in response.iter_bytes():
                if self.cancelled is not None and self.cancelled():
                    raise Cancelled(f"The download of {self.repo!r} was cancelled; nothing of it was kept.")
                file.write(chunk)
                if size is not None and file.tell() > size:
                    raise OSError(f"more than the announced {size} bytes arrive")
                self._check_size(filename, file.tell())
                if self.progress is not None and filename == _WEIGHTS:
                    self.progress(file.tell(), size or 0)

    def _check_size(self, filename: str, size: int) -> None:
        """Refuse what is larger than it may be, before the download where the Hub says how large it is."""
        if filename != _WEIGHTS:
            kind, most = json_limit(filename)
            if size > most:
                raise CheckpointError(f"The {filename} of {self.repo!r} is larger than any {kind}.")
        elif self.is_visitors and size > MAX_VISITORS_BYTES:
            raise CheckpointError(
                f"{self.repo!r} is too large to be opened here: its weights take more than {MAX_VISITORS_BYTES / 1e9:g} GB; "
                "choose a smaller model, or start an app of your own with --model."
            )
        elif size > _MAX_BYTES:
            raise CheckpointError(f"{self.repo!r} is larger than any model that we load.")


def _is_commit(revision: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}", revision) is not None


@contextmanager
def _errors_in_words(repo: str, revision: str) -> Iterator[None]:
    """Turn what huggingface_hub and its transport raise into one sentence."""
    from huggingface_hub import errors

    words = {
        errors.GatedRepoError: (
            f"{repo!r} is gated: accept its licence on the Hub, set the environment variable HF_TOKEN to your token, and load it "
            "again."
        ),
        errors.RevisionNotFoundError: f"{repo!r} has no revision {revision!r}; leave it out for the newest.",
        errors.RepositoryNotFoundError: (
            f"The Hub has no model {repo!r}, or it is private: check the spelling (owner/name); a private model can be "
            "downloaded and loaded as a folder."
        ),
        errors.LocalEntryNotFoundError: (
            f"{repo!r} is not on this machine and the Hub cannot be reached: check the network (or HF_HUB_OFFLINE), or use the "
            "bundled model 'mini'."
        ),
    }
    try:
        yield
    except Exception as error:
        text = next((one for kind, one in words.items() if isinstance(error, kind)), None)
        expected = (errors.HfHubHTTPError, errors.FileMetadataError, errors.HFValidationError, OSError)
        if text is None and not isinstance(error, expected) and not _is_transport(error):
            raise
        if text is None:
            _logger.info("fetching %s failed: %s", repo, error)
            text = f"Fetching {repo!r} from the Hub failed midway; nothing was kept, try again."
        raise CheckpointError(text) from error


def _is_transport(error: Exception) -> bool:
    """Whether the connection failed, and not what was asked for."""
    return type(error).__module__.split(".")[0] in _CLIENTS
