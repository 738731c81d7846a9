"""A Hub on this machine: files, faults to play, and what was asked with which token."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from vit_viz.model import VisionTransformer, ViTConfig

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = ViTConfig(img_size=24, patch_size=6, embed_dim=128, depth=2, num_heads=2, num_classes=7)
REPO = "someone/tiny-vit"


def weights(config: ViTConfig = CONFIG) -> bytes:
    """A safetensors file of random parameters."""
    torch.manual_seed(1)
    return save(dict(VisionTransformer(config).state_dict()))


@dataclass
class Hub:
    """Files by (repo, name), faults to play, and what was asked: (method, path, authorization).

    Faults: gated; commit (at which everything is from now on); announced (a SHA-256 that is not true); sizes (bytes that HEAD
    announces, by file name); and of the weights cut, reset or stall (what happens halfway), times (how often; always where
    absent), unsized (no length is told), ranges (a download may go on where it ended), elsewhere (the address to which it is sent
    on), pace (seconds between pieces of 64 kB).
    """

    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    fault: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    ranges: list[str | None] = field(default_factory=list)
    port: int = 0
    left: threading.Event = field(default_factory=threading.Event)

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def offer(self, repo: str = REPO, *, content: bytes | None = None, **config: Any) -> None:
        """Publish a small ViT."""
        settings = {"architecture": "vit_tiny_patch16_224", "model_args": {"num_heads": 2}, **config}
        self.files[repo, "config.json"] = json.dumps(settings).encode()
        self.files[repo, "model.safetensors"] = weights() if content is None else content

    def fetched(self) -> list[str]:
        """Paths of the files whose content was asked for."""
        return [path for method, path, _ in self.asked if method == "GET" and "/resolve/" in path]

    def answer(self, handler: BaseHTTPRequestHandler, *, body: bool) -> None:
        """One request."""
        parts = handler.path.split("?")[0].strip("/").split("/")
        repo, revision, name = "/".join(parts[:2]), parts[3] if len(parts) > 3 else "", "/".join(parts[4:])
        self.asked.append((handler.command, handler.path, handler.headers.get("authorization")))
        if self.fault.get("gated") and "authorization" not in handler.headers:
            return self.refuse(handler, 401, "GatedRepo", "Access to this model is restricted")
        if not any(repo == owner for owner, _ in self.files):
            return self.refuse(handler, 401, "RepoNotFound", "Repository not found")
        if revision not in ("main", COMMIT, self.fault.get("commit"), *self.fault.get("revisions", ())):
            return self.refuse(handler, 404, "RevisionNotFound", "no such revision")
        content = self.files.get((repo, name))
        if content is None:
            return self.refuse(handler, 404, "EntryNotFound", "no such file")
        large = name.endswith(".safetensors")
        if large and body and (elsewhere := self.fault.get("elsewhere")):
            handler.send_response(302)
            handler.send_header("Location", elsewhere + handler.path)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return None
        return self.send(handler, name, content, body=body)

    def send(self, handler: BaseHTTPRequestHandler, name: str, content: bytes, *, body: bool) -> None:
        """The content of a file, or only what it is like."""
        large = name.endswith(".safetensors")
        asked = handler.headers.get("range") if large and body and self.fault.get("ranges") else None
        if large and body:
            self.ranges.append(handler.headers.get("range"))
        begin = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        announced = self.fault.get("announced", hashlib.sha256(content).hexdigest())
        handler.send_response(206 if asked else 200)
        handler.send_header("X-Repo-Commit", self.fault.get("commit", COMMIT))
        handler.send_header("ETag", f'"{announced if large else hashlib.sha1(content).hexdigest()}"')
        size = self.fault.get("sizes", {}).get(name)
        if size is not None and not body:
            handler.send_header("X-Linked-Size", str(size))
        if self.fault.get("unsized") and large:
            handler.send_header("Connection", "close")
            handler.close_connection = True
        else:
            handler.send_header("Content-Length", str(len(content) - begin))
        handler.end_headers()
        if body:
            with contextlib.suppress(OSError):
                self.pour(handler, content[begin:], large=large)

    def pour(self, handler: BaseHTTPRequestHandler, content: bytes, *, large: bool) -> None:
        """Send bytes, with the faults that are to be played."""
        ending = (
            next((fault for fault in ("cut", "reset", "stall") if self.fault.get(fault)), None)
            if large
            else None
        )
        if ending and "times" in self.fault:
            self.fault["times"] -= 1
            ending = ending if self.fault["times"] >= 0 else None
        content = content[: len(content) // 2] if ending else content
        pace = self.fault.get("pace", 0) if large else 0
        for at in range(0, len(content), 65_536):
            handler.wfile.write(content[at : at + 65_536])
            if pace and self.left.wait(pace):
                return
        if ending:
            handler.close_connection = True
        if ending == "stall":
            self.left.wait(self.fault["stall"])
        if ending == "reset":
            time.sleep(0.05)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()

    @staticmethod
    def refuse(handler: BaseHTTPRequestHandler, status: int, code: str, message: str) -> None:
        """Say no, as the Hub does."""
        handler.send_response(status)
        handler.send_header("X-Error-Code", code)
        handler.send_header("X-Error-Message", message)
        if code != "RepoNotFound":
            handler.send_header("X-Repo-Commit", COMMIT)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@contextlib.contextmanager
def running_hub() -> Iterator[Hub]:
    """A Hub that answers until the block ends."""
    served = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            served.answer(self, body=False)

        def do_GET(self) -> None:
            served.answer(self, body=True)

        def log_message(self, *_args: Any) -> None:
            return None

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(
            self, *_args: Any
        ) -> None:  # a client that hangs up in the middle is part of the play
            return None

    server = Server(("127.0.0.1", 0), Handler)
    served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.left.set()
        server.shutdown()
        server.server_close()
        thread.join()


def remains(folder: Path) -> list[str]:
    """Weights in a cache, whole or not."""
    large = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 10_000]
    return [path.name for path in large] + [path.name for path in folder.rglob("*.incomplete")]
