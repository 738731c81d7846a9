"""A notebook's line between kernel and browser, with a program at the other end that knows nothing but its messages."""

from __future__ import annotations

import json
from typing import Any

from comm.base_comm import BaseComm
from numpy.typing import NDArray
from safetensors.numpy import load


class Line(BaseComm):
    """Carries messages as a notebook's does: JSON text, and buffers of bytes."""

    def __init__(self, widget: Any) -> None:
        self.received: list[tuple[dict[str, Any], list[bytes]]] = []
        super().__init__(target_name="jupyter.widget")
        widget.comm = self

    def publish_msg(self, msg_type: str, data: Any = None, buffers: Any = None, **_: Any) -> None:
        if msg_type == "comm_msg":
            text = json.dumps(data, allow_nan=False)
            self.received.append((json.loads(text), [bytes(buffer) for buffer in buffers or ()]))

    def ask(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """What comes back for a message of the browser."""
        self.received.clear()
        data = json.loads(json.dumps({"method": "custom", "content": content}))
        self.handle_msg({"content": {"data": data}, "buffers": []})
        ((answer, buffers),) = self.received
        assert answer["method"] == "custom"
        return answer["content"], buffers

    def question(self, name: str, **asked: Any) -> dict[str, NDArray[Any]]:
        """The arrays of the answer to a question."""
        said, (answer,) = self.ask({"ask": 7, "question": name, "asked": asked})
        assert said == {"ask": 7}
        return load(answer)
