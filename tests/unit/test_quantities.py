"""Sizes, durations and rates are read as people write them, and nothing else is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from runner.quantities import Bytes, Rate, Seconds, parse_bytes, parse_seconds, show_bytes, show_seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32 GiB", 34359738368),
        ("200MiB", 209715200),
        ("1.5 kB", 1500),
        (" 7 B ", 7),
        ("2 TB", 2 * 10**12),
        (4096, 4096),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250 ms", 0.25), ("60 s", 60), ("10 min", 600), ("1.5 h", 5400), ("2 d", 172800), (3, 3), (0.5, 0.5)],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["32", "GiB", "-1 GiB", "1 gib", "1 GB/s", "1_000 B", "nan GiB", "", None, True, [1]])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="write it like '32 GiB'"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["60", "s", "-1 s", "1 S", "inf s", "1e3 s", "1 m", "", None, True])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="write it like '60 s'"):
        parse_seconds(text)


def test_a_rate_is_run_time_for_media_time() -> None:
    rate = Rate.parse("60 s / 10 min")
    assert (rate.run_seconds, rate.media_seconds) == (60, 600)
    assert rate.budget(3600) == 360
    assert str(rate) == "60 s / 600 s"
    assert Rate.parse(str(rate)) == rate


@pytest.mark.parametrize("text", ["60 s", "60 s / 10 min / 2", "0 s / 10 min", "60 s / 0 s", "a / b", 3, None])
def test_what_is_no_rate_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"rate|unit"):
        Rate.parse(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (32 << 30, "32 GiB"), (3 << 40, "3 TiB")],
)
def test_sizes_are_shown(size: int, text: str) -> None:
    assert show_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.84, "0.8 s"), (99.9, "99.9 s"), (245, "4 min 05 s"), (3599.7, "1 h 00 min"), (7380, "2 h 03 min")],
)
def test_durations_are_shown(seconds: float, text: str) -> None:
    assert show_seconds(seconds) == text


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**6), st.sampled_from(["B", "KiB", "MiB", "GiB"]))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str) -> None:
    factor = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    assert parse_bytes(f"{number} {unit}") == number * factor


class _Model(BaseModel):
    size: Bytes
    time: Seconds
    rate: Rate


def test_models_read_them_and_write_rates_back() -> None:
    model = _Model.model_validate({"size": "1 KiB", "time": "1 min", "rate": "1 s / 2 s"})
    assert (model.size, model.time, model.rate) == (1024, 60.0, Rate(1.0, 2.0))
    assert _Model.model_validate(model.model_dump(mode="json")) == model


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (47.7, "48 s"), (99.0, "99 s"), (245.0, "4 min 05 s")])
def test_whole_seconds_leave_the_tenths_out(seconds: float, text: str) -> None:
    assert show_seconds(seconds, whole=True) == text
