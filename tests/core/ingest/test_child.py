"""A real child process: its limits, its death, and what it may say."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import psutil
import pytest

from core.errors import BugError, Cancelled, DocumentError, LimitReached, NoText, NotRead, ReaderCrashed
from core.ingest.child import ChildProcess


@pytest.fixture
def child():
    with ChildProcess(name="test") as process:
        yield process


@pytest.fixture
def call(child):
    return partial(child.call, stop=lambda: False, seconds=20, memory_bytes=1 << 30)


def wait_for_end(pid):
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_process_serves_many_calls(child, call):
    first = call("os:getpid")
    assert first != os.getpid()
    assert call("os:getpid") == first
    child.close()
    assert call("os:getpid") != first


def test_values_of_any_size(call):
    assert call("operator:mul", "ä", 3_000_000) == "ä" * 3_000_000
    assert call("operator:mul", b"ab", 3_000_000) == b"ab" * 3_000_000
    assert call("builtins:len", "x" * 3_000_000) == 3_000_000
    assert call("builtins:sorted", [3, 1]) == (1, 3)


def test_errors_are_what_they_were(call, in_child):
    source = """
    from core.errors import NoText

    def refuse():
        raise NoText("No text.", hint="Scan it.", details="why")
    """
    with pytest.raises(NoText) as caught:
        call(f"{in_child(source)}:refuse")
    assert (caught.value.message, caught.value.hint, caught.value.details) == ("No text.", "Scan it.", "why")
    with pytest.raises(FileNotFoundError):
        call("os:stat", "/nowhere/at all")
    with pytest.raises(BugError, match="mistake") as fault:
        call("math:sqrt", "a")
    assert "TypeError" in fault.value.details
    assert "child_side.py" in fault.value.details
    with pytest.raises(BugError):
        call("builtins:object")  # its result cannot be sent
    with pytest.raises(BugError):
        call("core.ingest.nowhere:f")


def test_a_mistake_is_logged_with_its_place_and_without_its_words(call, in_child, caplog):
    source = """
    def fail(text):
        raise ValueError(text)
    """
    with pytest.raises(BugError) as fault:
        call(f"{in_child(source)}:fail", "a secret of the document")
    assert "in fail" in caplog.text
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text + fault.value.details + str(fault.value)


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import os; os.abort()", "{root!r}; print('?')"])
def test_a_child_that_does_not_start_is_not_blamed_on_a_file(call, monkeypatch, code):
    monkeypatch.setattr("core.ingest.child._CODE", code)
    with pytest.raises(NotRead, match=r"does not start.*again") as caught:
        call("math:sqrt", 4)
    assert not isinstance(caught.value, ReaderCrashed)
    monkeypatch.undo()
    assert call("math:sqrt", 4) == 2


def test_a_child_that_hangs_before_it_has_started_can_be_stopped(child, monkeypatch):
    monkeypatch.setattr("core.ingest.child._CODE", "import time; time.sleep(60)")
    started = time.monotonic()
    with pytest.raises(Cancelled):
        child.call(
            "math:sqrt", 4, stop=lambda: time.monotonic() - started > 0.2, seconds=20, memory_bytes=1 << 30
        )
    monkeypatch.setattr("core.ingest.child._START_S", 0.2)
    with pytest.raises(NotRead, match="does not start"):
        child.call("math:sqrt", 4, stop=lambda: False, seconds=20, memory_bytes=1 << 30)
    assert time.monotonic() - started < 10


def test_an_answer_larger_than_any_text_is_not_taken(call):
    with pytest.raises(ReaderCrashed):
        call("operator:mul", b"x", (400 << 20) + 1)


def test_too_slow(child, call):
    pid = call("os:getpid")
    started = time.monotonic()
    with pytest.raises(LimitReached, match=r"longer than 0\.3 s"):
        call("time:sleep", 60, seconds=0.3)
    assert time.monotonic() - started < 5
    assert not psutil.pid_exists(pid)
    assert call("os:getpid") != pid


def test_an_answer_may_wait_to_be_taken(child):
    call = child.begin("operator:mul", "x", 1_000_000, stop=lambda: False, seconds=0.3, memory_bytes=1 << 30)
    assert call.wait(20)
    time.sleep(0.6)  # longer than the call may take, while whoever asked does something else
    assert len(call.result()) == 1_000_000


def test_the_limits_hold_while_nobody_waits(child, call):
    pid = call("os:getpid")
    begun = child.begin("time:sleep", 60, stop=lambda: False, seconds=0.3, memory_bytes=1 << 30)
    wait_for_end(pid)
    with pytest.raises(LimitReached):
        begun.result()


def test_close_ends_a_call(child, call):
    begun = child.begin("time:sleep", 60, stop=lambda: False, seconds=60, memory_bytes=1 << 30)
    child.close()
    with pytest.raises(Cancelled):
        begun.result()
    assert call("math:sqrt", 4) == 2


def test_a_loop_in_native_code_is_ended_too(call):
    with pytest.raises(LimitReached):
        call("re:match", "(a*)*b", "a" * 40, seconds=0.5)


def test_too_much_memory_is_seen_from_outside(call, in_child):
    source = """
    import time

    def fill():
        held = []
        while True:
            held.append(bytearray(b"x") * (4 << 20))
            time.sleep(0.001)
    """
    with pytest.raises(LimitReached, match=r"more than 0\.25 GB of memory"):
        call(f"{in_child(source)}:fill", memory_bytes=256 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not enforce the limit")
def test_too_much_memory_at_once_is_refused_by_the_system(call):
    with pytest.raises(LimitReached, match="memory"):
        call("builtins:bytes", 4 << 30, memory_bytes=256 << 20)


def test_memory_that_a_call_left_behind_is_not_the_next_ones(child, call, in_child):
    source = """
    import os
    held = []

    def leak():
        held.append(bytearray(b"x") * (350 << 20))
        return os.getpid()
    """
    leak = f"{in_child(source)}:leak"
    assert call(leak) != call(leak)


def test_a_crash_is_told_and_the_next_call_works(call):
    with pytest.raises(ReaderCrashed, match="crash") as caught:
        call("os:abort")
    assert caught.value.details == "SIGABRT"
    with pytest.raises(ReaderCrashed) as caught:
        call("os:_exit", 3)
    assert caught.value.details == "exit code 3"
    assert call("math:sqrt", 4) == 2


def test_a_child_that_died_between_calls_is_replaced(child, call):
    pid = call("os:getpid")
    os.kill(pid, signal.SIGKILL)
    child._process.wait(20)
    assert call("os:getpid") != pid


def test_stop(call):
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        call("time:sleep", 60, stop=stop.is_set)
    assert time.monotonic() - started < 5
    with pytest.raises(Cancelled):
        call("os:getpid", stop=stop.is_set)


def test_what_it_prints_does_not_come_between_the_answers(call, in_child):
    source = """
    import os, sys

    def shout():
        print("hello", flush=True)
        os.write(1, b"x" * 100)
        os.write(2, b"x" * 100)
        return sys.stdin.read()
    """
    assert call(f"{in_child(source)}:shout") == ""


def test_it_inherits_nothing_but_its_pipes(call, tmp_path, in_child):
    source = """
    import os

    def files_of_mine():
        found = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
        return [os.readlink(name) for name in found if os.path.lexists(name)]
    """
    if sys.platform != "linux":
        pytest.skip("there is no /proc")
    module = in_child(source)
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        assert [name for name in call(f"{module}:files_of_mine") if "secret" in name] == []


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff" * 8,
        b"\x05" + b"\0" * 7 + b"12345",
        b"\x07" + b"\0" * 7 + b"[[], 1]",
        b"\x0c" + b"\0" * 7 + b"[7, [99999]]",
        b"\x11" + b"\0" * 7 + b'[["nothing"], []]',
    ],
)
def test_a_child_that_was_taken_over_can_only_say_nonsense(call, in_child, answer):
    source = f"""
    import os

    def lie():
        for fd in range(3, 20):
            try:
                os.write(fd, {answer!r})
            except OSError:
                pass
        os._exit(0)
    """
    with pytest.raises(DocumentError, match="crash"):
        call(f"{in_child(source)}:lie")


def test_a_name_of_an_error_cannot_mean_something_else(call, in_child):
    source = """
    from core.errors import SlipstreamError

    class SystemExit(SlipstreamError):
        pass

    class Cancelled(SlipstreamError):
        pass

    def a():
        raise SystemExit("x")

    def b():
        raise Cancelled("y" * 100_000)
    """
    module = in_child(source)
    with pytest.raises(ReaderCrashed):
        call(f"{module}:a")
    with pytest.raises(Cancelled) as caught:
        call(f"{module}:b")
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize("work", ["'time:sleep', 60", "'re:match', '(a*)*b', 'a' * 40"])
def test_it_dies_with_its_parent(tmp_path, work):
    script = (
        "import threading, time\n"
        "from core.ingest.child import ChildProcess\n"
        "child = ChildProcess(name='orphan')\n"
        "options = dict(stop=lambda: False, seconds=2, memory_bytes=1 << 30)\n"
        "print(child.call('os:getpid', **options), flush=True)\n"
        f"child.call({work}, **options)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    time.sleep(0.3)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_for_end(pid)  # native code that holds the interpreter is ended by the kernel, later


def test_a_bundle_starts_itself_as_its_child(call, tmp_path, monkeypatch):
    program = tmp_path / "slipstream"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m app "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(program))
    assert call("math:sqrt", 4) == 2
