"""What goes wrong with the Hub, each in one sentence that says what to do."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from vit_viz.errors import CheckpointError

_logger = logging.getLogger(__name__)
_CLIENTS = ("httpx", "httpx2", "httpcore")  # whose errors differ between versions of huggingface_hub


@contextmanager
def errors_in_words(repo: str, revision: str) -> Iterator[None]:
    """Turn what huggingface_hub and its transport raise into one sentence."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise CheckpointError(
            f"{repo!r} is gated: accept its licence on the Hub, set the environment variable HF_TOKEN to your token, "
            "and load it again."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(
            f"{repo!r} has no revision {revision!r}; leave it out for the newest."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            f"The Hub has no model {repo!r}, or it is private: check the spelling (owner/name); a private model can be "
            "downloaded and loaded as a folder."
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise CheckpointError(
            f"{repo!r} is not on this machine and the Hub cannot be reached: check the network (or HF_HUB_OFFLINE), or "
            "use the bundled model 'mini'."
        ) from error
    except Exception as error:
        known = (errors.HfHubHTTPError, errors.FileMetadataError, errors.HFValidationError, OSError)
        if not isinstance(error, known) and not is_transport(error):
            raise
        _logger.info("fetching %s failed: %s", repo, error)
        raise CheckpointError(
            f"Fetching {repo!r} from the Hub failed midway; nothing was kept, try again."
        ) from error


def is_transport(error: Exception) -> bool:
    """Whether the connection failed, and not what was asked for."""
    return type(error).__module__.split(".")[0] in _CLIENTS
