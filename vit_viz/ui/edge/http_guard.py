"""What every HTTP request passes before Gradio sees it, and every answer before a visitor does.

Gradio is made for many kinds of apps and trusted visitors; this app needs little of it and is open to strangers. In this order the
guard
1. drops headers that no trusted proxy has set (`exposure`), and refuses host names under which the app is not served, addresses and
   methods that the page does not use (`addresses`), and pages of other sites (`entry`);
2. gives each browser a random name, a cookie, to which pages, pictures, files and handles are bound;
3. reads what is sent, in a bounded time (`bodies`), and only then admits it: pages (`pages`) and questions (`admission`), a bounded
   number for each visitor, and whatever else is fetched as its turn comes (`answer_turns`);
4. answers heartbeats, uploads and files itself, because what Gradio does there costs too much or gives away too much (`passage`);
5. turns what fails into one sentence, gives every answer its security headers (`headers`), and sends it as fast as it is read
   (`sending`).
Meanwhile it ends questions that nobody listens for, deletes expired files, and forgets pages that were closed long ago.
"""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from vit_viz.ui.edge.passage import Passage
from vit_viz.ui.edge.request_log import NUMBER, REQUEST, next_number
from vit_viz.ui.edge.shared_limits import SharedLimits


class HttpGuard(SharedLimits):
    """ASGI middleware around Gradio's app."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or answer it here."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            number = next_number()
            REQUEST.set(number)
            believed = {**self.exposure.believed(scope), NUMBER: number}
            await Passage(self, believed, receive, send).serve()
        else:
            await self.app(scope, receive, send)
