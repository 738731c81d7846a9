"""Unguessable names under which the browser may fetch what belongs to one visitor, for a limited time.

A handle stands for a subject: which visitor, which model, which image, which mode. It is worth nothing once it has expired, and in
any other browser than the one that it was issued to; it says nothing about the image, and is the same for the same subject.

A browser is known by a cookie that holds a random name. One that keeps no cookies has no name, and its handles are not bound.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

from vit_viz.session.request import Subject

VISITOR: ContextVar[str] = ContextVar("visitor", default="")
"""Name of the browser whose request is being handled; "" where it has none."""
_NAME = re.compile(r"([A-Za-z0-9_-]{24})([A-Za-z0-9_-]{16})")

HANDLE_SECONDS = 3600.0
MAX_HANDLES = 20_000


@cache
def cookie_name() -> str:
    """It follows from the key: of two servers of one host name, which browsers do not tell apart, each has its own cookie."""
    return f"vit_viz_{hmac.new(_key(), b'cookie', 'sha256').hexdigest()[:8]}"


def new_visitor() -> str:
    """A name for a browser: random, and signed, so that nobody can make up names of their own."""
    name = secrets.token_urlsafe(18)
    return name + _signature(name)


def visitor_in(cookies: Mapping[str, str]) -> str:
    """The name of a browser by the cookies that it sends; "" where it has none that this process gave."""
    name = cookies.get(cookie_name(), "")
    parts = _NAME.fullmatch(name)
    return name if parts and hmac.compare_digest(parts[2], _signature(parts[1])) else ""


def _signature(name: str) -> str:
    digest = hmac.new(_key(), name.encode(), "sha256").digest()
    return base64.urlsafe_b64encode(digest[:12]).decode()


@cache
def _key() -> bytes:
    """What this process signs with; another process gives other names."""
    return secrets.token_bytes(32)


@dataclass(frozen=True)
class _Bound:
    """What a handle stands for, whose that is, and the browser that it is bound to."""

    subject: Subject
    owner: str
    visitor: str


class Handles:
    """Subjects by handle; what nobody used for a while is forgotten, and of too many the dearest: how many a visitor has, by age.

    Args:
        max_seconds: time after its last use at which a handle expires.
        max_count: handles that are kept at most.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        max_seconds: float = HANDLE_SECONDS,
        max_count: int = MAX_HANDLES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_seconds = max_seconds
        self.max_count = max_count
        self._clock = clock
        self._lock = threading.Lock()
        self._bound: OrderedDict[str, tuple[_Bound, float]] = OrderedDict()
        self._handles: dict[_Bound, str] = {}

    def issue(self, subject: Subject) -> str:
        """The handle of a subject for the browser that asks: the one it has, or a new random one."""
        bound = _Bound(subject, subject.owner, VISITOR.get())
        with self._lock:
            self._expire()
            handle = self._handles.get(bound) or secrets.token_urlsafe(24)
            self._handles[bound] = handle
            self._touch(handle, bound)
            if len(self._bound) > self.max_count:
                self._make_room()
            return handle

    def find(self, handle: str, *, visitor: str = "") -> Subject | None:
        """The subject of a handle, or None where it is unknown, expired, or another browser's."""
        with self._lock:
            self._expire()
            entry = self._bound.get(handle)
            if entry is None or entry[0].visitor not in ("", visitor):
                return None
            self._touch(handle, entry[0])
            return entry[0].subject

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._bound)

    def _make_room(self) -> None:
        """Forget the dearest handles, a few at once because all of them are looked at."""
        now = self._clock()
        of = Counter(bound.visitor or bound.owner for bound, _used_at in self._bound.values())

        def price(handle: str) -> float:
            bound, used_at = self._bound[handle]
            return of[bound.visitor or bound.owner] * (now - used_at)

        for handle in sorted(self._bound, key=price, reverse=True)[: max(1, self.max_count // 64)]:
            bound, _used_at = self._bound.pop(handle)
            del self._handles[bound]

    def _touch(self, handle: str, bound: _Bound) -> None:
        self._bound[handle] = (bound, self._clock())
        self._bound.move_to_end(handle)

    def _expire(self) -> None:
        oldest = self._clock() - self.max_seconds
        while self._bound:
            handle, (bound, used_at) = next(iter(self._bound.items()))
            if used_at >= oldest:
                return
            del self._bound[handle]
            del self._handles[bound]
