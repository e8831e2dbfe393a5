"""Policy ``server:URL``: a llama-server that is running, with its own prompt cache, asked over HTTP.

It must serve the same model file: it gets the very tokens that our engine would read. Times and counts are
its own ``timings``. ``server-contextpilot:URL`` asks in the order of the package of the paper's authors.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlsplit

import numpy as np

from core.bench.run.measured import Measured
from core.bench.run.package import PackageOrder
from core.bench.run.policies import AS_FOUND, PILOT, Kind, Local
from core.bench.run.questions import Asked
from core.draft import Draft
from core.errors import KnownError
from core.types import Tier

PREFIX, PACKAGE_PREFIX = "server:", "server-contextpilot:"
_LOOK_S, _ANSWER_S = 2.0, 600.0


def answers(url: str) -> bool:
    """Whether a llama-server is there."""
    try:
        return bool(_request(_parts(url), "GET", "/props", None, _LOOK_S))
    except KnownError:
        return False


class Server(Local):
    """Our prompts, their engine and cache."""

    def kind_of(self, name: str) -> Kind:
        kind, _, url = name.partition(":")
        self._url = _parts(url)
        self._order = PackageOrder() if f"{kind}:" == PACKAGE_PREFIX else None
        rules = AS_FOUND if self._order is None else PILOT
        return Kind(rules, ram=False, ssd=False, pilot=self._order is not None, schedules=False)

    def _arrange(self, names: Sequence[int]) -> list[int] | None:
        return None if self._order is None else self._order.arrange(names)

    def _read(
        self, made: Draft, located: Sequence[Tier], n_on_disk: int
    ) -> tuple[dict[Tier, int], dict[Tier, float]]:
        del located, n_on_disk
        tokens = dict.fromkeys(Tier, 0)
        took = dict.fromkeys(Tier, 0.0)
        if self.shared.recalling:
            raise KnownError("A run with a server cannot be resumed.", hint="Leave out --resume.")
        prompt = np.concatenate([chunk.tokens for chunk in made.prompt.chunks]).tolist()
        body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "cache_prompt": True}
        try:
            timings = _request(self._url, "POST", "/completion", body, _ANSWER_S)["timings"]
            tokens[Tier.PREFILLED] = int(timings["prompt_n"])
            took[Tier.PREFILLED] = float(timings["prompt_ms"]) / 1000
        except (KeyError, TypeError, ValueError) as error:
            raise KnownError(
                f"{self.name} answered in a form that is not known.", details=str(error)
            ) from error
        tokens[Tier.LIVE] = len(prompt) - tokens[Tier.PREFILLED]
        return tokens, took

    def _assessed(self, row: Measured, asked: Asked, made: Draft) -> Measured:
        del asked, made
        return replace(row, path=f"{self.name} {row.path}")  # its logits are not ours to look at

    def _rest(self, asked: Asked) -> None:
        del asked
        self.bench.keep_tokens()


def _parts(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise KnownError(f"{url} is no address of a server.", hint="Write it as http://127.0.0.1:8080.")
    return parts


def _request(url: SplitResult, method: str, path: str, body: object, timeout_s: float) -> dict[str, Any]:
    """One exchange of JSON. Raises KnownError for whatever is no answer."""
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    try:
        connection = kind(url.hostname or "", url.port, timeout=timeout_s)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(
                method, url.path.rstrip("/") + path, data, {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise KnownError(f"The server {url.netloc} refused: {answer.status} {answer.reason}.")
            found: dict[str, Any] = json.loads(text)
            return found
        finally:
            connection.close()
    except (OSError, HTTPException, ValueError) as error:
        raise KnownError(f"The server {url.netloc} does not answer.", details=str(error)) from error
