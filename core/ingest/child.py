"""A child process that runs named functions within limits: what reads foreign files does it there.

A document can hang, fill the memory, crash or take over the process that reads it. None of these
reaches this one: the child is watched from here and killed, and its answers are plain data.
"""

import contextlib
import logging
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import psutil

from core import errors
from core.errors import BugError, Cancelled, LimitReached, NotRead, ReaderCrashed, SlipstreamError
from core.ingest import wire
from core.ingest.child_side import GREETING, LENGTH_BYTES

_log = logging.getLogger(__name__)
_POLL_S = 0.05
"""How often time, memory and ``stop`` are looked at."""
_ANSWER_S = 30.0
"""For an answer that was begun to be complete, when its time is over."""
_CALLS = 1000
"""After so many the child is started anew: what libraries leak goes with it."""
_KEPT_BYTES = 300 << 20
"""A child that holds more after a call is started anew: memory that was freed is seldom given back."""
_PIECE_BYTES = 1 << 20
_MAX_DESCRIPTION_BYTES = 64 << 20
_MAX_ANSWER_BYTES = 400 << 20
"""As much as the largest text has in UTF-8."""
_START_S = 60.0
"""A child may take so long to start; it takes a tenth of a second where nothing else is done."""
_MAX_MESSAGE = 2_000
"""Characters of a message that came from a child."""
_MAX_TRACE = 10_000
"""Characters of the lines that a mistake was made in, the innermost ones."""
_CODE = "import sys; {root!r} in sys.path or sys.path.insert(0, {root!r}); \
from core.ingest.child_side import serve; serve()"


class ChildProcess:
    """One child, started at the first call and again whenever it is gone. Calls wait for each other."""

    def __init__(self, *, name: str) -> None:
        """``name`` stands in the list of processes, behind the program's own."""
        self._name = name
        self._process: psutil.Popen | None = None
        self._n_calls = 0
        self._calling = threading.Lock()
        """Held from ``begin`` to the end of the call."""
        self._guard = threading.Lock()
        """Held while the watcher looks at a call, or kills its child."""
        self._current: Call | None = None
        self._busy = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(
        self, function: str, *args: object, stop: Callable[[], bool], seconds: float, memory_bytes: int
    ) -> Any:
        """Run ``function`` (``"core.ingest.readers:extract_file"``) in the child and return what it returns.

        That may be plain values, tuples (lists become tuples) and dataclasses of ``core.ingest``;
        arguments may be anything that can be pickled.

        Raises what the function raises of Slipstream's errors and OSError; LimitReached where it took
        longer than ``seconds`` or more than ``memory_bytes``, ReaderCrashed where the child died, and
        Cancelled soon after ``stop``, which is asked on another thread; in these cases the child is gone.
        NotRead where no child starts, BugError for the rest.
        """
        if stop():
            raise Cancelled
        return self.begin(function, *args, stop=stop, seconds=seconds, memory_bytes=memory_bytes).result()

    def begin(
        self, function: str, *args: object, stop: Callable[[], bool], seconds: float, memory_bytes: int
    ) -> "Call":
        """``call`` in two steps: the child works from now on. ``result`` must be asked before the next."""
        self._calling.acquire()
        try:
            message = pickle.dumps((function, args, seconds, memory_bytes))
            process = self._sent(len(message).to_bytes(LENGTH_BYTES, "little") + message, stop)
        except BaseException:
            self._calling.release()
            raise
        call = Call(process, self._finish, stop, seconds, memory_bytes)
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name=f"{self._name} watcher", daemon=True)
            self._watcher.start()
        with self._guard:
            self._current = call
        self._busy.set()
        return call

    def close(self) -> None:
        """End the child, and the call that it is working on. A later call starts another one."""
        with self._guard:
            self._end()
            self._watcher = None  # it sees that and ends
            if self._current is not None:
                self._current.is_closed = True
                self._current = None
                self._calling.release()
        self._busy.set()

    def _finish(self, call: "Call", *, keep: bool) -> None:
        """The call is over. ``keep``: the child answered, and may serve the next one."""
        with self._guard:
            if self._current is not call:
                return  # closed meanwhile
            self._current = None
            self._busy.clear()
            self._n_calls += 1
            if not keep or call.trouble or self._n_calls >= _CALLS or _rss(call.process) > _KEPT_BYTES:
                self._end()
            self._calling.release()

    def _watch(self) -> None:
        """On a thread of its own, since whoever began a call may be busy with something else."""
        while self._watcher is threading.current_thread():
            self._busy.wait()
            time.sleep(_POLL_S)
            with self._guard:
                call = self._current
                if call is not None and call.trouble is None and (trouble := call.looked_at()):
                    call.trouble = trouble
                    call.process.kill()

    def _sent(self, message: bytes, stop: Callable[[], bool]) -> psutil.Popen:
        """The child that has the message. One that died since the last call is replaced."""
        for _ in range(2):
            process = self._process
            if process is None or process.poll() is not None:
                self._end()
                process = self._process = self._started()
                try:
                    _wait_for_greeting(process, stop)
                except BaseException:
                    self._end()
                    raise
            rest = memoryview(message)
            try:
                while rest:
                    rest = rest[process.stdin.write(rest) or 0 :]
            except OSError:
                self._end()
            else:
                return process
        raise _crashed("it ended before it had begun")

    def _started(self) -> psutil.Popen:
        if getattr(sys, "frozen", False):
            command = [sys.executable, "child", self._name]
        else:
            # Not from the current folder: what lies there may be named like a module.
            code = _CODE.format(root=str(Path(__file__).resolve().parents[2]))
            command = [sys.executable, "-P", "-c", code, self._name]
        self._n_calls = 0
        try:
            return psutil.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
            )
        except OSError as error:
            raise _not_started(repr(error)) from error

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        process.wait()


class Call:
    """One call that a child is working on."""

    def __init__(
        self,
        process: psutil.Popen,
        finish: Callable[..., None],
        stop: Callable[[], bool],
        seconds: float,
        memory_bytes: int,
    ) -> None:
        self.process = process
        self.trouble: SlipstreamError | None = None
        """Why the child was killed."""
        self.is_closed = False
        """Its pipe is gone, and the pipe's number may mean another file by now."""
        self._finish = finish
        self._stop = stop
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._deadline = time.monotonic() + seconds
        self._pipe: int = process.stdout.fileno()
        self._is_read = False

    def wait(self, seconds: float) -> bool:
        """Whether the answer, or the end of the child, came within ``seconds``."""
        return self.is_closed or _readable(self._pipe, seconds)

    def result(self) -> Any:
        """What the function returned; raises as ``ChildProcess.call``. To be asked once."""
        if self.wait(0):  # it may have been waiting to be taken for long
            self._deadline = max(self._deadline, time.monotonic() + _ANSWER_S)
        self._is_read = True
        keep = False
        try:
            answer = self._answer()
            keep = True
        except ValueError as error:
            raise _crashed("its answer made no sense") from error
        finally:
            self._finish(self, keep=keep)
        return _result(answer, self._memory_bytes)

    def looked_at(self) -> SlipstreamError | None:
        """Why the child must be killed, if it must."""
        if self._stop():
            return Cancelled()
        # A child whose answer waits to be taken is done, however long nobody takes it.
        is_late = time.monotonic() > self._deadline
        if is_late and (self._is_read or not _readable(self._pipe, 0)):
            return LimitReached(
                f"Reading this file took longer than {self._seconds:,g} s; it was stopped.",
                hint="Save it in its program as several smaller files and add those.",
            )
        return _too_much_memory(self._memory_bytes) if _rss(self.process) > self._memory_bytes else None

    def _answer(self) -> tuple[Any, ...]:
        """Raises ValueError for an answer that makes no sense."""
        length = int.from_bytes(self._bytes(LENGTH_BYTES), "little")
        if length > _MAX_DESCRIPTION_BYTES:
            raise ValueError("description")
        description = bytes(self._bytes(length))
        sizes = wire.sizes(description)
        if sum(sizes) > min(self._memory_bytes, _MAX_ANSWER_BYTES):
            raise ValueError("size")
        answer = wire.decode(description, [memoryview(self._bytes(size)) for size in sizes])
        if not isinstance(answer, tuple) or not answer:
            raise ValueError("answer")
        return answer

    def _bytes(self, size: int) -> bytearray:
        """Exactly so many; memory is taken as they come, not as they are announced."""
        data = bytearray()
        while len(data) < size:
            if self.is_closed:
                raise Cancelled
            piece = os.read(self._pipe, min(size - len(data), _PIECE_BYTES))
            if not piece:
                raise self._died()
            data += piece
        return data

    def _died(self) -> SlipstreamError:
        code = self.process.wait()
        if self.trouble is not None:
            return self.trouble
        reason = f"exit code {code}"
        with contextlib.suppress(ValueError):
            reason = signal.Signals(-code).name
        return _crashed(reason)


def _wait_for_greeting(process: psutil.Popen, stop: Callable[[], bool]) -> None:
    """Return when the child is ready to work. Raises Cancelled, and NotRead if it is not."""
    pipe = process.stdout.fileno()
    deadline = time.monotonic() + _START_S
    while not _readable(pipe, _POLL_S):
        if stop():
            raise Cancelled
        if time.monotonic() > deadline:
            raise _not_started(f"no sign of it in {_START_S:g} s")
    if os.read(pipe, len(GREETING)) != GREETING:
        raise _not_started(f"exit code {process.wait()}")


def _readable(pipe: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(int(seconds * 1000)))


def _result(answer: tuple[Any, ...], memory_bytes: int) -> Any:
    match answer:
        case ("done", value):
            return value
        case ("memory",):
            raise _too_much_memory(memory_bytes)
        case ("known", str(kind), str(message), str(hint), str(details)):
            raise _known(kind, message[:_MAX_MESSAGE], hint[:_MAX_MESSAGE], details[:_MAX_MESSAGE])
        case ("os", int(number), str(reason)):
            raise OSError(number, reason[:_MAX_MESSAGE])
        case ("os", None, str(reason)):
            raise OSError(reason[:_MAX_MESSAGE])
        case ("fault", str(what), str(where)):
            details = f"{what[:_MAX_MESSAGE]}\n{where[-_MAX_TRACE:]}"
            _log.error("a mistake in the process that reads files: %s", details)
            raise BugError("Slipstream made a mistake while it read a file.", details=details)
    raise _crashed("its answer made no sense")


def _known(kind: str, message: str, hint: str, details: str) -> SlipstreamError:
    found = getattr(errors, kind, None)
    if found is Cancelled:
        return Cancelled(message)
    if isinstance(found, type) and issubclass(found, SlipstreamError):
        return found(message, hint=hint, details=details)
    return _crashed("its answer made no sense")


def _too_much_memory(memory_bytes: int) -> LimitReached:
    return LimitReached(
        f"Reading this file needed more than {memory_bytes / (1 << 30):,.3g} GB of memory; it was stopped.",
        hint="Save it in its program as several smaller files and add those.",
    )


def _not_started(reason: str) -> NotRead:
    return NotRead(
        "The process that reads files does not start; the file was not read.",
        hint="Close other programs, or start Slipstream again if it was updated meanwhile.",
        details=reason,
    )


def _crashed(reason: str) -> ReaderCrashed:
    return ReaderCrashed(
        "This file made its reader crash; it was not read.",
        hint="Open it in its program and save it again, or get another copy.",
        details=reason,
    )


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0  # it ended; that is noticed elsewhere
