"""Energy is told where the platform tells it, and never made up."""

from core.bench.run.energy import EnergyMeter


def package(folder, number, energy, largest=1000):
    path = folder / f"intel-rapl:{number}"
    path.mkdir(exist_ok=True)
    (path / "max_energy_range_uj").write_text(f"{largest}\n")
    (path / "energy_uj").write_text(f"{energy}\n")


def test_packages_add_up_and_wrap_around(tmp_path):
    package(tmp_path, 0, 900)
    package(tmp_path, 1, 100)
    meter = EnergyMeter(tmp_path)
    before = meter.read()
    package(tmp_path, 0, 99)
    package(tmp_path, 1, 300)
    assert meter.joules(before, meter.read()) == (200 + 200) / 1e6


def test_where_nothing_is_told_nothing_is_said(tmp_path):
    meter = EnergyMeter(tmp_path)
    assert meter.read() is None
    assert meter.joules(None, None) is None
    package(tmp_path, 0, "no number")
    assert EnergyMeter(tmp_path).read() is None
