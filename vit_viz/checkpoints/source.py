"""Where a model comes from: the bundled file, a local file or folder, or the Hub. The only module that may open the network."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vit_viz.checkpoints.catalog import BUNDLED, CATALOG, Entry, entry_of
from vit_viz.checkpoints.families import refuse_strangers
from vit_viz.checkpoints.weights import SUFFIXES, hash_file
from vit_viz.errors import CheckpointError

Progress = Callable[[int, int], None]
"""Called with (bytes fetched, bytes in all; 0 where unknown) while a file is downloaded."""

_logger = logging.getLogger(__name__)
_GENERIC = ("model", "pytorch_model")  # save_pretrained's names, which say nothing
_MAX_JSON_BYTES = 20_000_000
_MAX_DOWNLOAD_BYTES = 32_000_000_000
_ASSETS = Path(__file__).resolve().parents[2] / "assets"
_HUB_ID = re.compile(r"(?!.*(\.\.|--))[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}(@[\w./-]{1,100})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Source:
    """A checkpoint that lies on this machine now.

    Args:
        name: what the user calls it.
        weights: the file with the parameters.
        origin: in words, for the model card: "bundled with vit_viz", "a local file", "timm/... on the Hub at 0a1b2c3".
        settings: what config.json says, and under "preprocessor" what preprocessor_config.json says.
    """

    name: str
    weights: Path
    origin: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def is_hub_id(text: str) -> bool:
    """Whether a text has the form of a Hub id, "owner/name" or "owner/name@revision"; nobody is asked whether it exists."""
    return _HUB_ID.fullmatch(text) is not None


def find(
    ref: str | Path,
    *,
    local_files: bool = True,
    use_token: bool | None = None,
    progress: Progress | None = None,
) -> Source:
    """The checkpoint that a reference means, fetched where it is not here yet.

    Args:
        ref: "mini", a name of the catalog, a path of a file or a folder, or a Hub id with or without "@revision".
        local_files: whether paths count; False for references that come from a browser.
        use_token: whether the owner's Hub token may be sent; None means for models of the catalog only.
        progress: told about a download.

    Raises:
        CheckpointError: there is no such model, or it cannot be fetched; the message says what to do.
        UnknownFamily: its configuration says that it is no Vision Transformer.
    """
    text = str(ref)
    if text in BUNDLED:
        return _bundled(text)
    repo, _, revision = text.partition("@")
    entry = entry_of(repo)
    if entry is None and local_files and (local := _local(ref)) is not None:
        return local
    if entry is not None or is_hub_id(text):
        return _Hub(entry.hub_id if entry else repo, revision or "main", entry, use_token, progress).fetch()
    expected = "a checkpoint file, a folder with config.json, or a Hub id" if local_files else "or a Hub id"
    names = ", ".join([*BUNDLED, *(known.name for known in CATALOG)])
    raise CheckpointError(f"There is no model {text[:120]!r}: expected {names}, {expected}.")


def read_settings(config: Path | None, preprocessor: Path | None) -> dict[str, Any]:
    """The two JSON files that accompany a checkpoint, as one dictionary; a file that is not there says nothing.

    Raises:
        CheckpointError: one of them is too large, or is not a JSON object.
    """
    settings = _read_json(config)
    if extra := _read_json(preprocessor):
        settings["preprocessor"] = extra
    return settings


def _bundled(name: str) -> Source:
    path = _ASSETS / f"{name}.safetensors"
    if not path.is_file():
        raise CheckpointError(
            f"The bundled model {name!r} is not in this installation: assets/{path.name} is missing."
        )
    return Source(name, path, "bundled with vit_viz")


def _local(ref: str | Path) -> Source | None:
    """The file or folder of that path, or None."""
    try:
        path = Path(ref).expanduser()
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, RuntimeError, ValueError):  # too long, an unknown ~user, a NUL
        return None
    if is_folder:
        return _folder(path)
    return Source(path.stem, path, f"the local file {path.name}", _settings_beside(path)) if is_file else None


def _folder(path: Path) -> Source:
    """A folder as save_pretrained writes it."""
    if (path / "model.safetensors.index.json").is_file():
        raise CheckpointError(
            f"The folder {path.name!r} holds a model in several files; join them into one model.safetensors."
        )
    safe = sorted(path.glob("*.safetensors"))
    preferred = [file for file in safe if file.name == "model.safetensors"]
    files = preferred or safe or sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    folder = path.resolve().name
    if len(files) != 1:
        what = "no checkpoint" if not files else f"{len(files)} checkpoints"
        raise CheckpointError(
            f"The folder {folder!r} holds {what}: expected one model.safetensors beside config.json."
        )
    return Source(
        name=folder if files[0].stem in _GENERIC else files[0].stem,
        weights=files[0],
        origin=f"the local folder {folder}",
        settings=read_settings(path / "config.json", path / "preprocessor_config.json"),
    )


def _settings_beside(weights: Path) -> dict[str, Any]:
    """config.json beside a lone file counts only where it clearly belongs to it: the file has save_pretrained's name."""
    if weights.stem not in _GENERIC:
        return {}
    return read_settings(weights.parent / "config.json", weights.parent / "preprocessor_config.json")


def _read_json(path: Path | None) -> dict[str, Any]:
    if path is None or not path.is_file():
        return {}
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise CheckpointError(f"{path.name} is larger than any configuration.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise CheckpointError(f"{path.name} cannot be read: it is no JSON.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} must hold a JSON object.")
    return content


class _Hub:
    """One fetch from the Hub: every file at the same commit, hashes compared, errors in one sentence each."""

    def __init__(
        self, repo: str, revision: str, entry: Entry | None, use_token: bool | None, progress: Progress | None
    ) -> None:
        self.repo = repo
        self.revision = revision
        self.entry = entry
        self.token = None if (entry is not None if use_token is None else use_token) else False
        self.progress = progress

    def fetch(self) -> Source:
        """Configuration first, so that what is no ViT is refused before its weights are fetched."""
        from huggingface_hub import errors

        try:
            return self._fetch(offline=self._unreachable())
        except errors.GatedRepoError as error:
            raise CheckpointError(
                f"{self.repo!r} is gated: accept its licence on the Hub, set the environment variable HF_TOKEN to your token, "
                "and load it again."
            ) from error
        except errors.RevisionNotFoundError as error:
            raise CheckpointError(
                f"{self.repo!r} has no revision {self.revision!r}; leave it out for the newest."
            ) from error
        except errors.RepositoryNotFoundError as error:
            raise CheckpointError(
                f"The Hub has no model {self.repo!r}, or it is private: check the spelling (owner/name); a private model can be "
                "downloaded and loaded as a folder."
            ) from error
        except errors.LocalEntryNotFoundError as error:
            raise CheckpointError(
                f"{self.repo!r} is not on this machine and the Hub cannot be reached: check the network (or HF_HUB_OFFLINE), or "
                "use the bundled model 'mini'."
            ) from error
        except (errors.HfHubHTTPError, errors.FileMetadataError, errors.HFValidationError, OSError) as error:
            _logger.info("fetching %s failed: %s", self.repo, error)
            raise CheckpointError(
                f"Fetching {self.repo!r} from the Hub failed midway; nothing was kept, try again."
            ) from error
        except Exception as error:
            if type(error).__module__.split(".")[0] not in ("httpx", "httpx2", "httpcore", "hf_xet"):
                raise
            _logger.info("fetching %s failed: %s", self.repo, error)
            raise CheckpointError(
                f"Fetching {self.repo!r} from the Hub failed midway; nothing was kept, try again."
            ) from error

    def _fetch(self, *, offline: bool) -> Source:
        config = self._optional("config.json", self.revision, offline)
        commit = config.parent.name if config is not None else self.revision
        settings = read_settings(config, self._optional("preprocessor_config.json", commit, offline))
        refuse_strangers(settings, self.repo)
        if self.entry is not None:
            settings.setdefault("pretrained_cfg", self.entry.settings)
        weights = self._weights(commit, offline)
        commit = weights.parent.name
        name = self.entry.name if self.entry is not None else self.repo
        return Source(
            name, weights, f"{self.repo} on the Hub at {commit[:7]}", {"architecture": self.repo, **settings}
        )

    def _unreachable(self) -> bool:
        """Whether only the cache can answer; one short question instead of a minute of retries."""
        import huggingface_hub
        from huggingface_hub import errors

        url = huggingface_hub.hf_hub_url(self.repo, "config.json", revision=self.revision)
        try:
            huggingface_hub.get_hf_file_metadata(url, token=self.token, timeout=10)
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
            path = self._file("model.safetensors", commit, offline)
        except errors.LocalEntryNotFoundError:
            raise
        except errors.EntryNotFoundError as error:
            raise CheckpointError(
                f"{self.repo!r} has no model.safetensors; other formats can run code and are not fetched; convert it and load that."
            ) from error
        announced = _announced_hash(path)
        if announced is not None and hash_file(path) != announced:
            _forget(path)
            raise CheckpointError(
                f"The weights of {self.repo!r} arrived damaged (another SHA-256 than announced) and were deleted; try again."
            )
        return path

    def _optional(self, filename: str, revision: str, offline: bool) -> Path | None:
        from huggingface_hub import errors

        try:
            return self._file(filename, revision, offline)
        except errors.EntryNotFoundError as error:
            if isinstance(error, errors.LocalEntryNotFoundError) and not offline:
                raise
            return None

    def _file(self, filename: str, revision: str, offline: bool) -> Path:
        import huggingface_hub

        path = huggingface_hub.hf_hub_download(
            self.repo,
            filename,
            revision=revision,
            token=self.token,
            local_files_only=offline,
            tqdm_class=_bar(self.progress) if self.progress is not None else None,
        )
        if os.path.getsize(path) > _MAX_DOWNLOAD_BYTES:
            raise CheckpointError(f"{self.repo!r} is larger than any model that we load.")
        return Path(path)


def _announced_hash(path: Path) -> str | None:
    """SHA-256 that the Hub announced: the cache names the blob of a large file by it; None where it does not."""
    name = Path(os.readlink(path)).name if path.is_symlink() else path.name
    return name if _SHA256.fullmatch(name) else None


def _forget(path: Path) -> None:
    """Remove a file from the Hub's cache: the link in the snapshot and what it points to."""
    blob = path.resolve()
    path.unlink(missing_ok=True)
    blob.unlink(missing_ok=True)


def _bar(progress: Progress) -> type[Any]:
    """A progress bar that tells `progress` instead of drawing."""
    from huggingface_hub.utils.tqdm import tqdm

    class Bar(tqdm):
        fetched = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.fetched += int(n or 0)
            progress(self.fetched, int(self.total or 0))
            return None

    return Bar
