from pathlib import Path

import gpu_backend
import pytest


class Machine:
    """A made-up machine: a root folder and an environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"PATH": str(root / "bin")}
        self.file("bin/.keep")

    def file(self, name: str, content: bytes = b"", *, program: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"#!/bin/sh\n{program}\n".encode() if program else content)
        if program:
            path.chmod(0o755)
        return path

    def nvcc(self, name: str = "usr/local/cuda/bin/nvcc") -> str:
        return str(self.file(name, program="exit 0"))

    def gpu(self) -> None:
        self.file("dev/nvidia0")

    def jetson(self, chip: bytes = b"tegra234") -> None:
        self.file("proc/device-tree/compatible", b"nvidia,p3768-0000+p3767-0005\0nvidia," + chip + b"\0")

    def detect(self, want: str = "auto", system: str = "Linux") -> gpu_backend.Backend:
        return gpu_backend.detect(want, system=system, environ=self.environ, root=self.root)


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_a_plain_pc(machine):
    backend = machine.detect()
    assert (backend.name, backend.cmake_args, backend.warning) == ("cpu", "", "")


def test_nvcc_without_a_gpu_builds_for_the_cpu_and_says_why(machine):
    machine.nvcc()
    backend = machine.detect()
    assert (backend.name, backend.cmake_args, backend.warning) == ("cpu", "", "")
    assert "no NVIDIA GPU" in backend.reason


def test_a_gpu_without_nvcc_is_said_loudly(machine):
    machine.gpu()
    backend = machine.detect()
    assert (backend.name, backend.cmake_args) == ("cpu", "")
    assert "nvidia-cuda-toolkit" in backend.warning


def test_a_gpu_with_nvcc(machine):
    machine.gpu()
    nvcc = machine.nvcc()
    backend = machine.detect()
    assert (backend.name, backend.cmake_args) == ("cuda", "-DGGML_CUDA=ON")
    assert backend.env == {"CUDACXX": nvcc}
    assert backend.uses_gpu


def test_nvidia_smi_counts_when_it_names_a_gpu(machine):
    nvcc = machine.nvcc("bin/nvcc")
    machine.file("bin/nvidia-smi", program="exit 9")
    assert machine.detect().name == "cpu"
    machine.file("bin/nvidia-smi", program="echo 'GPU 0: NVIDIA GeForce RTX 4070 (UUID: GPU-1)'")
    assert machine.detect().name == "cuda"
    assert machine.detect().env == {"CUDACXX": nvcc}


def test_jetson_orin_finds_nvcc_off_the_path(machine):
    machine.jetson()
    nvcc = machine.nvcc()
    backend = machine.detect()
    assert backend.cmake_args == "-DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=87"
    assert backend.env == {"CUDACXX": nvcc}


def test_a_jetson_without_nvcc_is_told_about_jetpack(machine):
    machine.file("etc/nv_tegra_release", b"# R36 (release), REVISION: 4.3\n")
    backend = machine.detect()
    assert backend.name == "cpu"
    assert "sudo apt install nvidia-jetpack" in backend.warning


@pytest.mark.parametrize(("chip", "architecture"), [(b"tegra194", "72"), (b"tegra264", None)])
def test_other_jetsons(machine, chip, architecture):
    machine.jetson(chip)
    machine.nvcc()
    arguments = machine.detect().cmake_args
    assert arguments == "-DGGML_CUDA=ON" + (
        f" -DCMAKE_CUDA_ARCHITECTURES={architecture}" if architecture else ""
    )


def test_the_newest_toolkit_is_taken_where_there_is_no_default(machine):
    machine.gpu()
    machine.nvcc("usr/local/cuda-9.2/bin/nvcc")
    newest = machine.nvcc("usr/local/cuda-12.6/bin/nvcc")
    assert machine.detect().env == {"CUDACXX": newest}


def test_cuda_home_is_looked_in(machine):
    machine.gpu()
    nvcc = machine.nvcc("opt/cuda/bin/nvcc")
    machine.environ["CUDA_HOME"] = str(machine.root / "opt/cuda")
    assert machine.detect().env == {"CUDACXX": nvcc}


def test_a_mac_uses_metal(machine):
    assert machine.detect(system="Darwin").cmake_args == "-DGGML_METAL=ON"
    assert machine.detect("cpu", system="Darwin").cmake_args == "-DGGML_METAL=OFF"


def test_cpu_can_be_asked_for(machine):
    machine.gpu()
    machine.nvcc()
    assert machine.detect("cpu").cmake_args == ""


def test_the_users_options_are_kept_and_come_first(machine):
    machine.jetson()
    machine.nvcc()
    machine.environ["CMAKE_ARGS"] = "-DGGML_NATIVE=OFF -DCMAKE_CUDA_ARCHITECTURES=86"
    assert machine.detect().cmake_args == "-DGGML_NATIVE=OFF -DCMAKE_CUDA_ARCHITECTURES=86 -DGGML_CUDA=ON"


def test_a_backend_in_the_users_options_is_left_alone(machine):
    machine.gpu()
    nvcc = machine.nvcc()
    for arguments, env in (("-DGGML_VULKAN=ON", {}), ("-DGGML_CUDA=on", {"CUDACXX": nvcc})):
        machine.environ["CMAKE_ARGS"] = arguments
        backend = machine.detect()
        assert (backend.name, backend.cmake_args, backend.env) == ("custom", arguments, env)
