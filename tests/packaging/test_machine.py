import sys

import machine
import pytest


def test_everything_that_is_lacking_is_said_at_once():
    with pytest.raises(machine.SetupError) as caught:
        machine.refuse(
            [
                machine.Lack("a C compiler", ("g++",)),
                machine.Lack("a C++ compiler", ("g++",)),
                machine.Lack("x", ("libegl1",)),
            ]
        )
    said = str(caught.value)
    assert "a C compiler" in said
    if sys.platform.startswith("linux"):
        assert "sudo apt install g++ libegl1" in said
    machine.refuse([])


def test_a_missing_and_a_broken_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    assert [lack.debian for lack in machine.compiler_lacks()] == [("g++",), ("g++",)]
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'you have not agreed to the licence' >&2\nexit 69\n")
    broken.chmod(0o755)
    assert "not agreed to the licence" in machine.compiler_lacks()[0].what


def test_qt_that_lacks_a_library_names_its_package(tmp_path):
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho 'ImportError: libEGL.so.1: cannot open shared object file: No such' >&2\nexit 1\n"
    )
    python.chmod(0o755)
    with pytest.raises(machine.SetupError, match="libEGL"):
        machine.check_qt(python)


def test_x11_libraries_are_asked_for_only_where_a_window_goes_to_x11(monkeypatch):
    asked = []
    monkeypatch.setattr(machine.system_libs, "missing", lambda table: asked.append(table) or [])
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    machine.library_lacks(window=True)
    assert len(asked) == 2
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    machine.library_lacks(window=True)
    machine.library_lacks(window=False)
    assert len(asked) == 4
