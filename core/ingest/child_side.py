"""The child's side of ``child.py``: runs one named function after another, within limits, and answers.

A message is its length (8 bytes, little endian) and that many bytes. The parent's are pickles; the
answers are what ``wire.py`` writes, since a document may have taken over this process.
"""

import contextlib
import os
import pickle
import queue
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from core.errors import SlipstreamError
from core.ingest import wire

LENGTH_BYTES = 8
GREETING = b"\x06"
"""Comes before the first answer: the program is whole and works. Without it no file is to blame."""
_NICENESS = 5
"""Reading gives way to the window and to answers."""
_LATE_S = 5
"""The parent ends a call that takes too long. Where there is no parent any more, the kernel does, later."""
_SLACK_BYTES = 512 << 20
"""Address space beyond the memory that the parent watches: stacks, reserves, what was freed."""


def serve() -> NoReturn:
    """Work until the parent is gone. Standard input and output are the pipes to it."""
    commands, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)  # what a library prints must not come between the answers
    os.close(nothing)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal means the parent
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold the document
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands, waiting), daemon=True).start()
    with os.fdopen(answers, "wb", buffering=0) as out:
        out.write(GREETING)
        while True:
            _answer(out, _run(*pickle.loads(waiting.get())))  # noqa: S301 - written by the parent


def _listen(commands: int, waiting: "queue.SimpleQueue[bytes]") -> None:
    """On a thread of its own, so that the end of the parent is noticed in the middle of a file."""
    with contextlib.suppress(OSError), os.fdopen(commands, "rb") as stream:
        while len(length := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
            waiting.put(stream.read(int.from_bytes(length, "little")))
    os._exit(0)


def _run(function: str, args: tuple[Any, ...], seconds: float, memory_bytes: int) -> tuple[object, ...]:
    """The answer: ``("done", value)``, or what went wrong."""
    limit_memory(memory_bytes)
    signal.setitimer(signal.ITIMER_REAL, seconds + _LATE_S)  # SIGALRM ends a process that does not catch it
    try:
        return ("done", _named(function)(*args))
    except SlipstreamError as error:
        return ("known", type(error).__name__, error.message, error.hint, error.details)
    except MemoryError:
        return ("memory",)
    except OSError as error:
        return ("os", error.errno, error.strerror or str(error))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent is told
        # Where it was, and not its words, which may be the document's.
        return ("fault", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _named(function: str) -> Callable[..., object]:
    module, _, name = function.partition(":")
    found: Callable[..., object] = getattr(import_module(module), name)
    return found


def limit_memory(memory_bytes: int) -> None:
    """A second fence, on Linux: macOS accepts these limits and does not enforce them."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        limit = pages * resource.getpagesize() + memory_bytes + _SLACK_BYTES
        _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _answer(out: BinaryIO, answer: tuple[object, ...]) -> None:
    try:
        description, blobs = wire.encode(answer)
    except MemoryError:
        description, blobs = wire.encode(("memory",))
    except (TypeError, ValueError) as error:
        description, blobs = wire.encode(("fault", type(error).__name__, "Its answer cannot be sent."))
    del answer
    for part in (len(description).to_bytes(LENGTH_BYTES, "little") + description, *blobs):
        rest = memoryview(part)
        while rest:
            rest = rest[out.write(rest) or 0 :]
