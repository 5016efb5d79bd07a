"""A video's frames are those that are shown at the times asked for, and a case's folder is whole or not there."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import HostUnfit, UsageError
from runner.pipeline import data_prepare
from runner.pipeline.data_prepare import Advance, PreparedCase, PrepareRequest, parse_fps, prepare
from runner.video import frames_at, video_facts, video_length

SIZE = 64
LEVEL = 4
"""Frame n of a test video is grey of the level 20 + 4 n: far enough apart to survive the coding."""


def write_video(path: Path, times: list[Fraction], *, tick: Fraction, rate: Fraction, codec: str = "libx264") -> Path:
    """A video whose frame n is shown from ``times[n]`` on."""
    with av.open(str(path), "w") as sink:
        stream = sink.add_stream(codec, rate=rate)
        assert isinstance(stream, av.VideoStream)
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = tick
        stream.options = {"qp": "0"}
        for number, time in enumerate(times):
            grey = np.full((SIZE, SIZE, 3), 20 + LEVEL * number, dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, format="rgb24")
            frame.pts, frame.time_base = round(time / tick), tick
            sink.mux(stream.encode(frame))
        sink.mux(stream.encode(None))
    return path


def steady(path: Path, *, frames: int, rate: int, tick: Fraction | None = None) -> Path:
    times = [Fraction(number, rate) for number in range(frames)]
    return write_video(path, times, tick=tick or Fraction(1, rate), rate=Fraction(rate))


def shown(path: Path, fps: Fraction | int) -> list[int]:
    """Which frames of a test video are given."""
    found = []
    for image in frames_at(path, Fraction(fps)):
        level = float(np.asarray(image.convert("L")).mean())
        number = round((level - 20) / LEVEL)
        assert abs(level - 20 - LEVEL * number) < 1.9
        found.append(number)
    return found


@pytest.mark.parametrize(
    ("rate", "frames", "fps", "wanted"),
    [
        (24, 48, 1, [0, 24]),
        (24, 49, 1, [0, 24, 48]),  # a third second has begun
        (24, 47, 1, [0, 24]),
        (10, 7, 10, list(range(7))),
        (10, 4, 20, [0, 0, 1, 1, 2, 2, 3, 3]),
        (10, 7, 4, [0, 2, 5]),  # at .25 s the frame of .2 s is still shown
        (10, 20, Fraction(1, 2), [0]),
        (10, 21, Fraction(1, 2), [0, 20]),
        (30, 30, Fraction(30000, 1001), list(range(30))),
    ],
)
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_the_frame_at_a_time_is_the_last_one_shown_at_or_before_it(
    tmp_path: Path, rate: int, frames: int, fps: int, wanted: list[int], suffix: str
) -> None:
    assert shown(steady(tmp_path / f"a.{suffix}", frames=frames, rate=rate), fps) == wanted


def test_a_clock_of_milliseconds_gives_every_frame_once(tmp_path: Path) -> None:
    path = steady(tmp_path / "a.mkv", frames=50, rate=24)
    with av.open(str(path)) as container:
        assert container.streams.video[0].time_base == Fraction(1, 1000)
    assert shown(path, 24) == list(range(50))


def test_a_rate_that_varies_is_followed_by_time_not_by_number(tmp_path: Path) -> None:
    times = [Fraction(t, 10) for t in (0, 1, 2, 12, 13, 25, 30)]
    path = write_video(tmp_path / "a.mkv", times, tick=Fraction(1, 1000), rate=Fraction(10))
    assert shown(path, 1)[:4] == [0, 2, 4, 6]
    assert shown(path, 2)[:7] == [0, 2, 2, 4, 4, 5, 6]


def test_times_count_from_the_first_frame(tmp_path: Path) -> None:
    times = [Fraction(7) + Fraction(n, 10) for n in range(20)]
    path = write_video(tmp_path / "a.mkv", times, tick=Fraction(1, 1000), rate=Fraction(10))
    assert shown(path, 1) == [0, 10]


@settings(max_examples=25)
@given(fps=st.fractions(min_value=Fraction(1, 3), max_value=40, max_denominator=1001))
def test_the_rule_holds_for_every_rate(fps: Fraction, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "rule.mp4"
    if not path.exists():
        steady(path, frames=25, rate=12)
    wanted: list[int] = []
    while len(wanted) / fps < Fraction(25, 12):
        wanted.append(int(len(wanted) / fps * 12))
    found = shown(path, fps)
    assert len(wanted) - len(found) in (0, 1)  # a frame due within the last millisecond may be left out
    assert found == wanted[: len(found)]


def test_length_and_header_are_read_without_decoding(tmp_path: Path) -> None:
    path = steady(tmp_path / "a.mp4", frames=36, rate=12)
    assert video_length(path) == 36
    facts = video_facts(path)
    assert (facts.seconds, facts.width, facts.height) == (3.0, SIZE, SIZE)


def test_what_is_no_video_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"no video at all" * 100)
    for read in (video_length, video_facts, lambda p: list(frames_at(p, Fraction(1)))):
        with pytest.raises(UsageError) as caught:
            read(path)
        assert caught.value.where == str(path)
        assert caught.value.what == "the video cannot be read: Invalid data found when processing input"


def test_a_video_without_pictures_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    with av.open(str(path), "w") as sink:
        stream = sink.add_stream("pcm_s16le", rate=8000)
        assert isinstance(stream, av.AudioStream)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), dtype=np.int16), layout="mono")
        sound.sample_rate = 8000
        sink.mux(stream.encode(sound))
        sink.mux(stream.encode(None))
    with pytest.raises(UsageError, match="the video cannot be read: it holds no video"):
        video_length(path)


def test_a_video_that_ends_before_its_header_says_so_is_refused(tmp_path: Path) -> None:
    path = steady(tmp_path / "a.mkv", frames=50, rate=10)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"it ends after \d\.\d s, its header says 5\.0 s"):
        list(frames_at(path, Fraction(1)))


def test_a_clock_that_jumps_is_refused(tmp_path: Path) -> None:
    times = [Fraction(0), Fraction(1), Fraction(2_000_000)]
    path = write_video(tmp_path / "a.mkv", times, tick=Fraction(1, 1000), rate=Fraction(1))
    with pytest.raises(UsageError, match=r"its clock jumps from 1\.00 s to 2000000\.00 s"):
        list(frames_at(path, Fraction(1)))


@pytest.mark.parametrize(
    ("text", "value"), [("1", Fraction(1)), ("0.5", Fraction(1, 2)), ("30000/1001", Fraction(30000, 1001))]
)
def test_frames_a_second_as_people_write_them(text: str, value: Fraction) -> None:
    assert parse_fps(text) == value


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1e3", "1/0", "inf", "1001", "1 fps"])
def test_frames_a_second_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="is no number of frames a second above 0 and up to 1000"):
        parse_fps(text)


Run = Callable[..., dict[str, PreparedCase]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Prepare what lies in ``videos``; what came of it, by case."""
    (tmp_path / "videos").mkdir()

    def go(fps: int = 1, **changes: object) -> dict[str, PreparedCase]:
        request = PrepareRequest(videos=tmp_path / "videos", out=tmp_path / "out", fps=Fraction(fps), **changes)  # type: ignore[arg-type]
        told: list[PreparedCase] = []
        found = prepare(request, advance=lambda _: None, tell=told.append)
        assert tuple(told) == found
        return {one.case: one for one in found}

    return go


def test_a_folder_a_case_with_its_record(tmp_path: Path, run: Run) -> None:
    steady(tmp_path / "videos" / "01.mp4", frames=25, rate=10)
    steady(tmp_path / "videos" / "02.mp4", frames=10, rate=10)
    (tmp_path / "videos" / "notes.txt").write_text("no video")
    found = run()
    assert {case: (one.made, one.problem) for case, one in found.items()} == {"01": (True, ""), "02": (True, "")}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["01", "02"]
    names = sorted(path.name for path in (tmp_path / "out" / "01").iterdir())
    assert names == ["00000.png", "00001.png", "00002.png", "prepared.json"]
    record = json.loads((tmp_path / "out" / "01" / "prepared.json").read_text())
    assert {key: record[key] for key in ("source", "fps", "format", "frames")} == {
        "source": "01.mp4", "fps": "1", "format": "png", "frames": 3,
    }  # fmt: skip


def test_it_is_done_once(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    steady(tmp_path / "videos" / "01.mp4", frames=25, rate=10)
    first = run()["01"].record
    monkeypatch.setattr(data_prepare, "frames_at", None)
    again = run()["01"]
    assert (again.made, again.problem, again.record) == (False, "", first)


def test_the_hash_of_the_frames_is_that_of_their_names_and_bytes(tmp_path: Path, run: Run) -> None:
    import hashlib  # noqa: PLC0415

    steady(tmp_path / "videos" / "01.mp4", frames=25, rate=10)
    record = run()["01"].record
    assert record is not None
    total = hashlib.sha256()
    for path in sorted((tmp_path / "out" / "01").glob("*.png")):
        total.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    assert record.frames_sha256 == total.hexdigest()


def test_what_was_made_otherwise_is_told_and_left_alone(tmp_path: Path, run: Run) -> None:
    video = steady(tmp_path / "videos" / "01.mp4", frames=25, rate=10)
    run()
    folder = tmp_path / "out" / "01"
    before = sorted(path.stat().st_mtime_ns for path in folder.iterdir())
    assert run(fps=2)["01"].problem == f"{folder} was made from fps 1; remove it, or give another folder"
    assert run(format="jpg")["01"].problem == f"{folder} was made from png; remove it, or give another folder"
    steady(video, frames=26, rate=10)
    assert run()["01"].problem == f"{folder} was made from another video; remove it, or give another folder"
    assert sorted(path.stat().st_mtime_ns for path in folder.iterdir()) == before


def test_a_folder_of_others_is_not_touched(tmp_path: Path, run: Run) -> None:
    steady(tmp_path / "videos" / "01.mp4", frames=25, rate=10)
    mine = tmp_path / "out" / "01" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert run()["01"].problem == f"{mine.parent} is there and was not made here; remove it, or give another"
    assert mine.read_text() == "mine"


def test_a_frame_that_was_lost_is_missed(tmp_path: Path, run: Run) -> None:
    steady(tmp_path / "videos" / "01.mp4", frames=25, rate=10)
    run()
    folder = tmp_path / "out" / "01"
    (folder / "00001.png").unlink()
    what = f"{folder} has 2 frames, prepared.json says 3; remove it, and it is made anew"
    assert run()["01"].problem == what


def test_a_broken_video_is_named_and_the_others_go_on(tmp_path: Path, run: Run) -> None:
    videos = tmp_path / "videos"
    whole = steady(videos / "01.mkv", frames=50, rate=10).read_bytes()
    (videos / "01.mkv").write_bytes(whole[: len(whole) // 2])
    (videos / "02.mkv").write_bytes(b"none")
    steady(videos / "03.mkv", frames=10, rate=10)
    found = run(pattern="{case}.mkv")
    assert found["01"].problem.startswith(f"{videos}/01.mkv: the video cannot be read: it ends after ")
    assert found["02"].problem == f"{videos}/02.mkv: the video cannot be read: Invalid data found when processing input"
    assert found["03"].made
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["03"]


def test_what_a_killed_one_left_is_swept_and_nothing_else(tmp_path: Path, run: Run) -> None:
    steady(tmp_path / "videos" / "01.mp4", frames=10, rate=10)
    (tmp_path / "out" / ".01.0123abcd.partial").mkdir(parents=True)
    (tmp_path / "out" / ".01.partial").mkdir()
    run()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".01.partial", "01"]


def test_a_full_disk_ends_it_and_keeps_what_is_done(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil  # noqa: PLC0415

    steady(tmp_path / "videos" / "01.mp4", frames=10, rate=10)
    run()
    steady(tmp_path / "videos" / "02.mp4", frames=10, rate=10)
    usage = shutil.disk_usage(tmp_path)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(HostUnfit, match=r"the frames still to be written take about \S+ \S+, and 1 MiB are free"):
        run()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["01"]


def test_two_do_not_write_to_one_folder(tmp_path: Path, run: Run) -> None:
    steady(tmp_path / "videos" / "01.mp4", frames=10, rate=10)
    (tmp_path / "out").mkdir()
    with data_prepare._alone(tmp_path / "out"), pytest.raises(UsageError, match="another process prepares data in"):
        run()


def test_what_is_asked_wrongly_is_told(tmp_path: Path, run: Run) -> None:
    with pytest.raises(UsageError, match=r"no video matches '\{case\}.mp4'"):
        run()
    with pytest.raises(UsageError, match=r"--pattern: '\*.mp4' must name \{case\} exactly once"):
        run(pattern="*.mp4")
    with pytest.raises(UsageError, match="must stay inside its folder"):
        run(pattern="../{case}.mp4")


def test_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "v" / "01").mkdir(parents=True)
    steady(tmp_path / "v" / "01" / "x.mp4", frames=20, rate=10)
    far: list[Advance] = []
    request = PrepareRequest(videos=tmp_path / "v", out=tmp_path / "o", fps=Fraction(1), pattern="{case}/x.mp4")
    prepare(request, advance=far.append, tell=lambda _: None)
    assert [(one.case, one.done, one.total) for one in far] == [("01", 0, 2), ("01", 1, 2), ("01", 2, 2)]
