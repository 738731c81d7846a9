"""The newest view of every open page, so that of two actions at the same moment neither undoes the other.

Gradio hands each handler the view as it was when the event arrived. Two handlers that overlap would both start from that view, and
the one that ends last would overwrite the other. Here the second is applied again, to what the first made of the view.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from cachetools import LRUCache

from vit_viz.views.state import ViewState

MAX_PAGES = 10_000


class ViewStore:
    """Newest views by page; of too many pages, the one that was quiet for longest is forgotten.

    Args:
        max_pages: pages that are remembered at most; one that was forgotten behaves as if it had just been opened.
    """

    def __init__(self, *, max_pages: int = MAX_PAGES) -> None:
        self._lock = threading.Lock()
        self._views: LRUCache[str, ViewState] = LRUCache(max_pages)

    def apply(
        self, page: str, seen: ViewState, change: Callable[[ViewState], ViewState]
    ) -> tuple[ViewState, ViewState]:
        """Change the newest view of a page; returns what it was and what it became.

        Args:
            page: identity of one opened page.
            seen: the view that the action started from; where a newer one came meanwhile, `change` runs again, on that.
            change: may be slow; no lock is held meanwhile.
        """
        while True:
            changed = change(seen)
            with self._lock:
                newest = self._views.get(page, seen)
                if newest.revision <= seen.revision:
                    self._views[page] = changed
                    return seen, changed
            seen = newest
