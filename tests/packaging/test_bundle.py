import os
import subprocess
import sys
from pathlib import Path

import bundle
import pytest

ROOT = Path(__file__).parent.parent.parent


def test_the_bare_environment_has_no_python(tmp_path):
    env = bundle.bare_environment(tmp_path)
    assert env["PATH"] == "/nonexistent"
    assert not {"VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH"} & set(env)


def test_a_window_that_closes_by_itself_is_a_failure(tmp_path, monkeypatch):
    program = tmp_path / "slipstream"
    program.write_text("#!/bin/sh\necho 'no Qt platform plugin could be initialized' >&2\nexit 134\n")
    program.chmod(0o755)
    monkeypatch.setattr(bundle, "PROGRAM", program)
    with pytest.raises(SystemExit, match="no Qt platform plugin"):
        bundle.window([], tmp_path)
    with pytest.raises(SystemExit, match="self-test failed"):
        bundle.selftest([], tmp_path)


def test_a_window_that_stays_is_closed_and_passes(tmp_path, monkeypatch):
    program = tmp_path / "slipstream"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(bundle, "PROGRAM", program)
    monkeypatch.setattr(bundle, "WINDOW_STAYS_S", 0.3)
    bundle.window([], tmp_path)


def test_the_network_is_off_where_that_is_permitted():
    prefix = bundle.without_network()
    if not prefix:
        pytest.skip("this user may not make a network namespace")
    done = subprocess.run([*prefix, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True)
    assert [line.split(":")[0].strip() for line in done.stdout.splitlines()[2:]] == ["lo"]


def test_build_spec_keeps_the_kernels_sources():
    """Numba caches only functions whose source file it finds; core.jit's list and the spec's must agree."""
    from core.jit import KERNEL_MODULES

    spec = (ROOT / "build.spec").read_text(encoding="utf-8")
    for name in ("core.jit", *KERNEL_MODULES):
        assert f'"{name}"' in spec


@pytest.mark.bundle
@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("SLIPSTREAM_TEST_BUNDLE"), reason="takes two minutes: SLIPSTREAM_TEST_BUNDLE=1"
)
def test_make_bundle():
    done = subprocess.run(
        [sys.executable, ROOT / "packaging" / "bundle.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "selftest passed" in done.stdout
