# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads files with huggingface_hub; runs under a Python that has it, as a process of its own.

The first line of its standard input is the request: no token in a process list. Then nothing comes, and the end of that
input is the end of the one who asked, and so of this process: two runs must not write into one file. It answers with
one JSON object a line.

hf_hub_download() itself forgets a partial file when its process dies (since huggingface_hub 2: file_download.py,
_download_to_tmp_and_move), so its two transports are called here with a file of our own. They are the same from
huggingface_hub 0.36 to 2.4.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable
from urllib.parse import urlsplit

# Also what a killed transfer loses of each file: huggingface_hub reads 10 MiB before it writes them.
CHUNK_BYTES = 1 << 20
_MOVED_EVERY = 0.25

_say_lock = threading.Lock()


def say(kind: str, **told: object) -> None:
    """One line to the one who asked."""
    with _say_lock:
        sys.stdout.write(json.dumps({"kind": kind, **told}) + "\n")
        sys.stdout.flush()


class Bar:
    """What huggingface_hub takes for a progress bar. It tells that bytes came, now and then."""

    total: object = None
    n = 0
    _last = 0.0

    def update(self, count: float = 1) -> None:
        now = time.monotonic()
        if count > 0 and now - Bar._last >= _MOVED_EVERY:
            Bar._last = now
            say("moved")

    update_transfer = update

    def ignore(self, *_args: object, **_named: object) -> None:
        """Text beside the bar."""

    set_postfix_str = set_transfer_postfix_str = set_description = refresh = close = ignore


class Partial(io.BufferedRandom):
    """A file that grows. It is told when what was there is given up: the other side has hashed it already."""

    def __init__(self, file: dict[str, Any]) -> None:
        path = Path(file["partial"])
        path.touch()
        super().__init__(io.FileIO(path, "r+b"))
        self._path = str(file["path"])
        self.seek(0, os.SEEK_END)

    def truncate(self, size: int | None = None) -> int:
        done = super().truncate(size)
        say("again", path=self._path)
        return done


def end_with_parent() -> None:
    """Wait for the end of the standard input; past sys.stdin, whose lock the end of this process would wait for."""
    while os.read(0, 1):
        pass
    os._exit(1)


def describe(error: BaseException) -> dict[str, object]:
    """An error as the other side judges it: HTTP status and the Hub's own code, or the number of a system error."""
    response = getattr(error, "response", None)
    return {
        "status": getattr(response, "status_code", None),
        "code": response.headers.get("X-Error-Code", "") if response is not None else "",
        "errno": error.errno if isinstance(error, OSError) else None,
        "file": str(error.filename or "") if isinstance(error, OSError) else "",
        "text": f"{type(error).__name__}: {error}",
    }


def downloader(request: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """How one file is brought, for this request."""
    from huggingface_hub import __version__, constants, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get, xet_get

    constants.DOWNLOAD_CHUNK_SIZE = CHUNK_BYTES
    # False: no token that happens to lie in a home folder.
    token = request["token"] or False
    with_xet = request["xet"] and importlib.util.find_spec("hf_xet") is not None

    def stream(file: dict[str, Any], address: str, headers: dict[str, str], opened: Partial) -> None:
        http_get(
            address,
            opened,
            resume_size=opened.tell(),
            headers=headers,
            expected_size=file["size"],
            displayed_filename=file["path"],
            _tqdm_bar=Bar(),
        )

    def bring(file: dict[str, Any]) -> None:
        url = hf_hub_url(request["repo_id"], file["path"], revision=request["commit"])
        metadata = get_hf_file_metadata(url, token=token, timeout=request["timeout"])
        if metadata.size is not None and metadata.size != file["size"]:
            say("size", path=file["path"], told=metadata.size)
            return
        headers = {"user-agent": f"gpuserve-sglang; hf_hub/{__version__}"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        partial = Path(file["partial"])
        have = partial.stat().st_size if partial.exists() else 0
        xet = getattr(metadata, "xet_file_data", None)
        # Xet begins at the front again; what there is is continued over plain HTTP.
        if with_xet and xet is not None and have == 0:
            xet_get(
                incomplete_path=partial,
                xet_file_data=xet,
                headers=headers,
                expected_size=file["size"],
                displayed_filename=file["path"],
                _tqdm_bar=Bar(),
            )
        else:
            if urlsplit(metadata.location).netloc != urlsplit(url).netloc:
                headers.pop("authorization", None)
            with Partial(file) as opened:
                stream(file, metadata.location, headers, opened)
        say("arrived", path=file["path"])

    return bring


def main() -> None:
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        bring = downloader(request)
    except ImportError as error:
        say("missing", text=str(error))
        return

    say("ready")

    def attempt(file: dict[str, Any]) -> None:
        try:
            bring(file)
        except Exception as error:
            say("failed", path=file["path"], **describe(error))

    with ThreadPoolExecutor(request["max_workers"]) as pool:
        list(pool.map(attempt, request["files"]))


if __name__ == "__main__":
    main()
