"""Joules from counters that wrap and from power; which counters are taken."""

from pathlib import Path

import pytest

from runner.gpu.energy import EnergyZone, counted, find_zones, integrated, read_counter


@pytest.mark.parametrize(
    ("readings", "total"),
    [
        ([], 0), ([5], 0), ([5, 5], 0), ([5, 9, 12], 7),
        ([90, 10], 20), ([90, 10, 95, 5], 115), ([90, 100, 0, 40], 50),
    ],
)  # fmt: skip
def test_a_counter_that_wraps_at_100(readings: list[int], total: int) -> None:
    assert counted(readings, wraps_at=100) == total


@pytest.mark.parametrize(
    ("samples", "joules"),
    [
        ([], 0.0), ([(3.0, 50.0)], 0.0), ([(0.0, 100.0), (2.0, 100.0)], 200.0), ([(1.0, 0.0), (3.0, 100.0)], 100.0),
        ([(0.0, 10.0), (1.0, 30.0), (4.0, 30.0)], 110.0),
    ],
)  # fmt: skip
def test_power_by_trapezoids(samples: list[tuple[float, float]], joules: float) -> None:
    assert integrated(samples) == joules


def zone(root: Path, name: str, label: str, *, counter: str | None = "17\n", wraps: str = "262143328850\n") -> None:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(label + "\n")
    (folder / "max_energy_range_uj").write_text(wraps)
    if counter is not None:
        (folder / "energy_uj").write_text(counter)


def test_only_whole_packages_that_can_be_read_are_counted(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:0:0", "core")
    zone(tmp_path, "intel-rapl:1", "package-1", counter=None)
    zone(tmp_path, "intel-rapl:2", "psys")
    zone(tmp_path, "intel-rapl:3", "package-3", wraps="much\n")
    zone(tmp_path, "intel-rapl:4", "package-4", counter="\n")
    zone(tmp_path, "intel-rapl:5", "package-5-die-1", counter="99")
    zone(tmp_path, "other:0", "package-0")
    found = find_zones(tmp_path)
    assert found == (
        EnergyZone(counter=tmp_path / "intel-rapl:0" / "energy_uj", wraps_at=262143328850),
        EnergyZone(counter=tmp_path / "intel-rapl:5" / "energy_uj", wraps_at=262143328850),
    )
    assert [read_counter(one) for one in found] == [17, 99]
    assert find_zones(tmp_path / "nowhere") == ()
