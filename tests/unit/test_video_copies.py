"""A copy has the same pixels, format and times, is made from the frames shown alone, and takes up another's future."""

import errno
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from runner.errors import UsageError
from runner.video_copies import copy_without_loss
from runner.video_cuts import cut, cut_points
from tests.unit.test_video_cuts import FRAMES, film, packets, shown


@pytest.mark.parametrize(
    ("coding", "suffix", "pixels"),
    [
        ("libx264", "mp4", "yuv420p"),
        ("libx264", "mkv", "yuv420p"),
        ("libx264", "ts", "yuv420p"),
        ("libx264", "mp4", "yuvj420p"),
        ("libx264", "mov", "yuv422p"),
        ("libx264", "mp4", "yuv444p"),
        ("libx264", "mp4", "yuv420p10le"),
        ("libx265", "mkv", "yuv420p"),
        ("mpeg4", "mp4", "yuv420p"),
        ("mpeg2video", "ts", "yuv420p"),
        ("mjpeg", "mov", "yuvj444p"),
        ("libvpx-vp9", "webm", "yuv420p"),
        ("ffv1", "mkv", "gbrp10le"),
        ("ffv1", "mkv", "gray"),
        ("ffv1", "mkv", "gray16le"),
    ],
)
def test_pixels_format_and_times_are_the_same(tmp_path: Path, coding: str, suffix: str, pixels: str) -> None:
    whole = film(tmp_path / f"whole.{suffix}", coding, pixels=pixels)
    full = shown(whole)
    assert full[0][1] == pixels
    for frames in (1, 17, FRAMES):
        copy_without_loss(whole, tmp_path / f"{frames}.{suffix}", frames)
        assert shown(tmp_path / f"{frames}.{suffix}") == full[:frames]


def test_sizes_may_be_odd(tmp_path: Path) -> None:
    for coding, suffix, pixels in (("ffv1", "mkv", "yuv420p"), ("libvpx-vp9", "mp4", "yuv420p")):
        whole = film(tmp_path / f"whole.{suffix}", coding, {"lossless": "1"}, pixels=pixels, size=65, frames=6)
        copy_without_loss(whole, tmp_path / f"copy.{suffix}", 4)
        assert shown(tmp_path / f"copy.{suffix}") == shown(whole)[:4]


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov", "ts", "avi"])
def test_a_shorter_copy_is_the_beginning_of_a_longer_one(tmp_path: Path, suffix: str) -> None:
    whole = film(tmp_path / f"whole.{suffix}")
    k = cut_points(whole)[6]
    cut(whole, tmp_path / f"cut.{suffix}", k)
    for name, source, frames in (("a", "whole", k), ("b", "cut", k), ("c", "whole", FRAMES)):
        copy_without_loss(tmp_path / f"{source}.{suffix}", tmp_path / f"{name}.{suffix}", frames)
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    assert packets(tmp_path / f"a.{suffix}") == packets(tmp_path / f"c.{suffix}")[:k]
    assert b"all 30 frames" not in (tmp_path / f"c.{suffix}").read_bytes()


def test_avi_has_no_times_and_keeps_the_order(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.avi", "mpeg4")
    copy_without_loss(whole, tmp_path / "copy.avi", 20)
    copied, full = shown(tmp_path / "copy.avi"), shown(whole)
    assert [pixels for _, _, pixels in copied] == [pixels for _, _, pixels in full[:20]]
    assert [time - copied[0][0] for time, _, _ in copied] == [Fraction(n, 25) for n in range(20)]


def test_frames_that_come_at_any_time_keep_their_times(tmp_path: Path) -> None:
    times = [7000 + 40 * n + 13 * (n % 3) + (900 if n > 20 else 0) for n in range(FRAMES)]
    for suffix in ("mkv", "mp4"):
        whole = film(tmp_path / f"whole.{suffix}", times=times)
        copy_without_loss(whole, tmp_path / f"copy.{suffix}", FRAMES)
        assert shown(tmp_path / f"copy.{suffix}") == shown(whole)


def test_the_next_frame_of_a_copy_says_nothing_of_when_it_comes(tmp_path: Path) -> None:
    steps = {"early": 40, "late": 900}
    for name, step in steps.items():
        times = [40 * n if n < 20 else 760 + step * (n - 19) for n in range(FRAMES)]
        whole = film(tmp_path / f"{name}.mkv", options={"qp": "0"}, times=times)
        copy_without_loss(whole, tmp_path / f"{name}-copy.mkv", 20)
    assert (tmp_path / "early-copy.mkv").read_bytes() == (tmp_path / "late-copy.mkv").read_bytes()


def test_another_videos_frames_follow_from_half_a_sequence_away(tmp_path: Path) -> None:
    mine = film(tmp_path / "mine.mp4")
    theirs = film(tmp_path / "theirs.mkv", frames=11, seed=2)
    copy_without_loss(mine, tmp_path / "both.mp4", 12, then=(theirs, FRAMES - 12))
    got, full, other = shown(tmp_path / "both.mp4"), shown(mine), shown(theirs)
    assert [time for time, _, _ in got] == [time for time, _, _ in full]
    assert [pixels for _, _, pixels in got] == [
        *(pixels for _, _, pixels in full[:12]), *(other[(place + 5) % 11][2] for place in range(12, FRAMES)),
    ]  # fmt: skip


def test_another_future_is_brought_to_the_same_size_and_format(tmp_path: Path) -> None:
    mine = film(tmp_path / "mine.mp4")
    theirs = film(tmp_path / "theirs.avi", "mjpeg", pixels="yuvj422p", size=80, seed=2)
    copy_without_loss(mine, tmp_path / "both.mp4", 12, then=(theirs, 18))
    got, full = shown(tmp_path / "both.mp4"), shown(mine)
    assert got[:12] == full[:12]
    assert {(kind, len(pixels)) for _, kind, pixels in got} == {("yuv420p", 64 * 64 * 3 // 2)}
    assert len({pixels for _, _, pixels in got}) == FRAMES
    with av.open(str(theirs)) as container:
        first = list(container.decode(video=0))[(12 + FRAMES // 2) % FRAMES]
    assert np.array_equal(
        np.frombuffer(got[12][2], np.uint8), first.reformat(64, 64, format="yuv420p").to_ndarray().ravel()
    )


def test_a_future_may_be_longer_than_the_video_was(tmp_path: Path) -> None:
    mine, theirs = film(tmp_path / "mine.mkv", frames=10), film(tmp_path / "theirs.mkv", seed=2)
    copy_without_loss(mine, tmp_path / "both.mkv", 10, then=(theirs, 5))
    assert [time for time, _, _ in shown(tmp_path / "both.mkv")] == [Fraction(n, 25) for n in range(15)]


def test_the_same_call_gives_the_same_bytes(tmp_path: Path) -> None:
    mine, theirs = film(tmp_path / "mine.mkv", size=320), film(tmp_path / "theirs.mkv", seed=2)
    for name in ("a", "b"):
        copy_without_loss(mine, tmp_path / f"{name}.mkv", 7, then=(theirs, 9))
    assert (tmp_path / "a.mkv").read_bytes() == (tmp_path / "b.mkv").read_bytes()


def test_how_it_is_to_be_seen_is_kept(tmp_path: Path) -> None:
    whole = tmp_path / "whole.mp4"
    with av.open(str(whole), "w") as sink:
        stream = sink.add_stream("libx264", rate=30)
        assert isinstance(stream, av.VideoStream)
        context = stream.codec_context
        context.width, context.height, context.pix_fmt = 64, 48, "yuv420p"
        context.colorspace, context.color_primaries, context.color_trc, context.color_range = 1, 1, 1, 1
        context.sample_aspect_ratio = Fraction(4, 3)
        for _ in range(3):
            sink.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        sink.mux(stream.encode(None))
    copy_without_loss(whole, tmp_path / "copy.mp4", 3)
    with av.open(str(tmp_path / "copy.mp4")) as container:
        context = container.streams.video[0].codec_context
        assert (context.colorspace, context.color_primaries, context.color_trc, context.color_range) == (1, 1, 1, 1)
        assert context.sample_aspect_ratio == Fraction(4, 3)
        assert container.streams.video[0].average_rate == 30


def test_what_cannot_be_copied_is_told_with_its_reason(tmp_path: Path) -> None:
    packed = film(tmp_path / "packed.mov", "png", pixels="rgb24")
    with pytest.raises(UsageError, match=r"the video cannot be cut: no lossless coding holds rgb24 in a \.mov file"):
        copy_without_loss(packed, tmp_path / "copy.mov", 3)
    turned = film(tmp_path / "turned.mp4", turned=90)
    with pytest.raises(UsageError, match="the video cannot be cut: it is marked to be shown turned"):
        copy_without_loss(turned, tmp_path / "copy.mp4", 3)
    untimed = film(tmp_path / "untimed.mpg", options={"bf": "2"})
    with pytest.raises(UsageError, match="the video cannot be cut: some of its packets have no time"):
        copy_without_loss(untimed, tmp_path / "copy.mpg", 20)
    with pytest.raises(UsageError, match=r"the video cannot be cut: a \.txt file cannot hold it"):
        copy_without_loss(turned, tmp_path / "copy.txt", 20)
    with pytest.raises(UsageError, match="the video has 30 frames, 31 were asked for"):
        copy_without_loss(packed, tmp_path / "copy.mov", FRAMES + 1)


def test_a_full_disk_is_the_hosts(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.ts")
    (tmp_path / "copy.ts").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        copy_without_loss(whole, tmp_path / "copy.ts", 20)
    assert caught.value.errno == errno.ENOSPC
