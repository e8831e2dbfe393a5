"""A peer over HTTP: asked with our tokens, believed in its own timings, and left out where it is not there."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import bench_data
import pytest

from core.bench.run.harness import Options, measure
from core.bench.run.server import answers
from core.bench.run.workloads import Source
from core.config import Settings
from core.errors import KnownError

pytestmark = pytest.mark.model


class _Peer(BaseHTTPRequestHandler):
    """Keeps the last prompt, token by token, as llama-server does."""

    last = ()
    broken = False

    def _answer(self, found):
        data = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self._answer({"total_slots": 1})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body["cache_prompt"]
        prompt = tuple(body["prompt"])
        n = 0
        while n < min(len(prompt) - 1, len(_Peer.last)) and prompt[n] == _Peer.last[n]:
            n += 1
        _Peer.last = prompt
        timings = {"prompt_n": len(prompt) - n, "prompt_ms": 2.0 * (len(prompt) - n)}
        self._answer({} if _Peer.broken else {"timings": timings})

    def log_message(self, *_):
        pass


@pytest.fixture
def peer():
    server = HTTPServer(("127.0.0.1", 0), _Peer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    _Peer.last, _Peer.broken = (), False
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(tmp_path, tiny_model):
    bench_data.library(tmp_path)
    settings = Settings(model=str(tiny_model), n_ctx=1024, ram_cache_mb=200, ssd_cache_mb=0)

    def run(*policies):
        return measure(Options("multi-session", Source(tmp_path, "made_document", k=3), policies), settings)

    return run


def test_its_own_timings_are_believed(run, peer):
    name = f"server:{peer}"
    found = run("last-prompt", name)
    theirs, ours = found["policies"][name], found["policies"]["last-prompt"]
    assert theirs["prompt_tokens"] == ours["prompt_tokens"]
    assert theirs["hit_ratio"] == pytest.approx(ours["hit_ratio_token_level"])
    assert theirs["prefill_s"]["mean"] == pytest.approx(0.002 * theirs["prefilled_tokens"])
    assert found["not_found"] == []


def test_who_is_not_there_is_named(run, peer):
    assert answers(peer)
    found = run("none", "server:http://127.0.0.1:9")
    assert found["not_found"] == ["server:http://127.0.0.1:9"]
    assert list(found["policies"]) == ["none"]
    with pytest.raises(KnownError, match="None of these"):
        run("server:http://127.0.0.1:9")


def test_an_answer_in_another_form_is_an_error(run, peer):
    _Peer.broken = True
    with pytest.raises(KnownError, match="form that is not known"):
        run(f"server:{peer}")
