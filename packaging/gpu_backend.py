"""Which llama.cpp to build on this machine: Metal, CUDA or CPU, and why.

A GPU and its compiler must both be there for CUDA: a Jetson without nvcc would otherwise get a CPU
build in silence, and a build machine with nvcc and no GPU would get one that it cannot run.
Standard library only.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CHOICES = ("auto", "cpu", "cuda", "metal")

TEGRA_ARCHITECTURES = {"tegra194": "72", "tegra234": "87"}
"""Jetson Xavier and Orin; llama.cpp finds out by itself what newer ones are."""

_GPU_OPTION = re.compile(r"-DGGML_(CUDA|METAL|VULKAN|HIP|SYCL|MUSA|CANN|OPENCL)\b")


@dataclass(frozen=True)
class Backend:
    name: str
    """``cpu``, ``cuda``, ``metal``, or ``custom`` where the user's CMAKE_ARGS decide."""
    cmake_args: str
    """The whole CMAKE_ARGS for the build, the user's own included; empty for a plain CPU build."""
    reason: str
    """One sentence for the screen."""
    warning: str = ""
    """What to install to use the GPU that is there; empty if nothing is wrong."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further variables for the build."""

    @property
    def uses_gpu(self) -> bool:
        return self.name in ("cuda", "metal")


def tegra_chip(root: Path) -> str | None:
    """``tegra234`` on a Jetson Orin, ``""`` on a Jetson of unknown kind, None where there is none."""
    try:
        compatible = (root / "proc/device-tree/compatible").read_bytes().decode("ascii", "replace")
    except OSError:
        compatible = ""
    if found := re.search(r"nvidia,(tegra\w+)", compatible):
        return found.group(1)
    return "" if (root / "etc/nv_tegra_release").exists() else None


def has_nvidia_gpu(root: Path, environ: Mapping[str, str]) -> bool:
    """Whether a desktop or server NVIDIA GPU is present: its device file, or nvidia-smi naming one."""
    if (root / "dev/nvidia0").exists():
        return True
    program = shutil.which("nvidia-smi", path=environ.get("PATH", ""))
    if not program:
        return False
    try:
        done = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "GPU 0" in done.stdout


def find_nvcc(root: Path, environ: Mapping[str, str]) -> str | None:
    """CUDA's compiler, also where it is installed and not on the PATH, as on every Jetson."""
    named = environ.get("CUDACXX")
    if named and shutil.which(named, path=environ.get("PATH", "")):
        return named
    folders = [Path(environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    folders.append(root / "usr/local/cuda/bin")

    def version(folder: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", folder.parent.name)]

    folders += sorted((root / "usr/local").glob("cuda-*/bin"), key=version, reverse=True)
    path = os.pathsep.join([environ.get("PATH", ""), *map(str, folders)])
    return shutil.which("nvcc", path=path)


def detect(
    want: str = "auto",
    *,
    system: str | None = None,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> Backend:
    """Decide for this machine; ``want`` overrides. The user's own CMAKE_ARGS always come first."""
    system = platform.system() if system is None else system
    environ = os.environ if environ is None else environ
    users = environ.get("CMAKE_ARGS", "").strip()
    chip = tegra_chip(root)
    jetson = chip is not None
    nvcc = find_nvcc(root, environ)

    def backend(name: str, options: list[str], reason: str, warning: str = "") -> Backend:
        named_by_user = {_option_name(arg) for arg in shlex.split(users)}
        ours = [option for option in options if _option_name(option) not in named_by_user]
        with_cuda = name == "cuda" or re.search(r"-DGGML_CUDA=(ON|1|TRUE)\b", users, re.IGNORECASE)
        env = {"CUDACXX": nvcc} if with_cuda and nvcc else {}
        return Backend(name, " ".join([users, *ours]).strip(), reason, warning, env)

    cuda_options = ["-DGGML_CUDA=ON"]
    if chip in TEGRA_ARCHITECTURES:
        cuda_options.append(f"-DCMAKE_CUDA_ARCHITECTURES={TEGRA_ARCHITECTURES[chip]}")

    if _GPU_OPTION.search(users):
        return backend("custom", [], f"as CMAKE_ARGS says ({users})")
    if want == "cpu":
        return backend("cpu", ["-DGGML_METAL=OFF"] if system == "Darwin" else [], "CPU, as asked for")
    if want == "metal" or (want == "auto" and system == "Darwin"):
        return backend("metal", ["-DGGML_METAL=ON"], "Metal, this Mac's GPU")
    if want == "cuda":
        return backend("cuda", cuda_options, f"CUDA, as asked for (nvcc: {nvcc or 'not found'})")

    gpu = jetson or has_nvidia_gpu(root, environ)
    name = "this Jetson's GPU" if jetson else "the NVIDIA GPU"
    if gpu and nvcc:
        return backend("cuda", cuda_options, f"CUDA for {name} (nvcc: {nvcc})")
    if gpu:
        return backend("cpu", [], "CPU only, because nvcc was not found", _missing_nvcc(name, jetson=jetson))
    reason = "CPU (nvcc is installed, but this machine has no NVIDIA GPU)" if nvcc else "CPU"
    return backend("cpu", [], reason)


def _missing_nvcc(name: str, *, jetson: bool) -> str:
    install = "sudo apt install nvidia-jetpack" if jetson else "sudo apt install nvidia-cuda-toolkit"
    return (
        f"This machine has a GPU that Slipstream could use ({name}), but CUDA's compiler, nvcc, was not\n"
        f"found: not on the PATH, not in CUDA_HOME, not in /usr/local/cuda. Building for the CPU, which\n"
        f"is many times slower. To use the GPU, install the CUDA toolkit:\n\n    {install}\n\n"
        f"and type the same command again; Slipstream is then rebuilt by itself."
    )


def _option_name(argument: str) -> str:
    """``-DGGML_CUDA`` of ``-DGGML_CUDA=ON`` and of ``-DGGML_CUDA:BOOL=ON``."""
    return re.split(r"[=:]", argument, maxsplit=1)[0]
