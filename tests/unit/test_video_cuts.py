"""A cut video decodes to the full one's pixels, and holds no byte of a later frame nor any of what it was cut from."""

import errno
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.video_cuts import cut, cut_points

FRAMES = 30
WINDOW = 32
"""Bytes that no two packets of the test videos share by chance."""

Shown = list[tuple[Fraction, str, bytes]]
CODINGS: dict[str, Mapping[str, str]] = {
    "libx264": {"bf": "3", "g": "12"},
    "libx265": {"x265-params": "keyint=12:bframes=3:open-gop=1:log-level=none"},
    "mpeg4": {"bf": "2", "g": "12"},
    "mpeg2video": {"bf": "2", "g": "12"},
}


def pictures(frames: int, *, size: int = 64, seed: int = 1) -> list[np.ndarray]:
    """Noise that moves, so that frames are made from others, with a patch of its own in each."""
    rng = np.random.default_rng(seed)
    ground = rng.integers(0, 256, (size, size, 3), dtype=np.uint8)
    made = []
    for number in range(frames):
        picture = np.roll(ground, 2 * number, axis=1)
        picture[:16, :16] = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
        made.append(picture)
    return made


def film(
    path: Path, coding: str = "libx264", options: Mapping[str, str] | None = None, *, frames: int = FRAMES,
    times: list[int] | None = None, pixels: str = "yuv420p", size: int = 64, seed: int = 1, sound: str = "",
    turned: int = 0, tag: str = "",
) -> Path:  # fmt: skip
    """A video of 25 frames a second, or one whose frame n is shown after ``times[n]`` milliseconds."""
    with av.open(str(path), "w", options={"avoid_negative_ts": "disabled"}) as sink:
        sink.metadata.update({"title": "all 30 frames", "creation_time": "2020-01-01T00:00:00Z"})
        stream = sink.add_stream(coding, rate=25, options=dict(CODINGS.get(coding, {}) if options is None else options))
        assert isinstance(stream, av.VideoStream)
        stream.width = stream.height = size
        stream.pix_fmt = pixels
        if tag:
            stream.codec_context.codec_tag = tag
        if turned:
            stream.set_display_rotation(turned)
        tick = Fraction(1, 25) if times is None else Fraction(1, 1000)
        stream.time_base = stream.codec_context.time_base = tick
        voice: av.AudioStream | None = None
        if sound:
            added = sink.add_stream(sound, rate=8000)
            assert isinstance(added, av.AudioStream)
            voice = added
            voice.layout = "mono"
        for number, picture in enumerate(pictures(frames, size=size, seed=seed)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number if times is None else times[number], tick
            sink.mux(stream.encode(frame))
            if voice is not None:
                noise = np.random.default_rng(number).integers(-9999, 9999, (1, 320), dtype=np.int16)
                heard = av.AudioFrame.from_ndarray(noise, format="s16", layout="mono")
                heard.sample_rate, heard.pts, heard.time_base = 8000, 320 * number, Fraction(1, 8000)
                sink.mux(voice.encode(heard))
        sink.mux(stream.encode(None))
        if voice is not None:
            sink.mux(voice.encode(None))
    return path


def samples(frame: av.VideoFrame) -> bytes:
    """What is seen, plane by plane, without what fills up the rows in memory."""
    width = (frame.format.components[0].bits + 7) // 8
    rows = [
        np.frombuffer(bytes(plane), np.uint8).reshape(plane.height, plane.line_size)[:, : width * plane.width]
        for plane in frame.planes
    ]
    return b"".join(plane.tobytes() for plane in rows)


def shown(path: Path) -> Shown:
    """Time, pixel format and pixels of each frame."""
    with av.open(str(path)) as container:
        found = []
        for frame in container.decode(video=0):
            assert frame.pts is not None
            assert frame.time_base is not None
            found.append((frame.pts * frame.time_base, frame.format.name, samples(frame)))
        return found


def packets(path: Path, kind: str = "video") -> list[tuple[Fraction, Fraction, bytes]]:
    """Time, duration and bytes of each packet of the first stream of a kind."""
    with av.open(str(path)) as container:
        stream = next(one for one in container.streams if one.type == kind)
        return [
            ((packet.pts or 0) * packet.time_base, (packet.duration or 0) * packet.time_base, bytes(packet))
            for packet in container.demux(stream)
            if packet.size
        ]


def windows(data: bytes) -> set[bytes]:
    return {data[at : at + WINDOW] for at in range(len(data) - WINDOW + 1)}


def by_times(path: Path) -> tuple[int, ...]:
    """Where the first k packets are the first k frames shown, as their times tell it."""
    times = [time for time, _, _ in packets(path)]
    return tuple(k for k in range(1, len(times)) if max(times[:k]) < min(times[k:]))


@pytest.mark.parametrize(
    ("coding", "suffix"),
    [
        *(("libx264", suffix) for suffix in ("mp4", "mkv", "mov", "avi", "ts")),
        *(("libx265", suffix) for suffix in ("mp4", "mkv")),
        *(("mpeg4", suffix) for suffix in ("mp4", "avi")),
        ("mpeg2video", "ts"),
    ],
)
def test_every_cut_decodes_to_the_same_pixels_and_holds_no_later_byte(tmp_path: Path, coding: str, suffix: str) -> None:
    whole = film(tmp_path / f"whole.{suffix}", coding)
    full, stored = shown(whole), packets(whole)
    points = cut_points(whole)
    assert len(full) == len(stored) == FRAMES
    assert 8 < len(points) < FRAMES - 6  # there are frames made from later ones
    held = [windows(data) for _, _, data in stored]
    for k in points:
        target = tmp_path / f"{k}.{suffix}"
        cut(whole, target, k)
        assert shown(target) == full[:k]
        assert packets(target) == stored[:k]
        beside = windows(target.read_bytes()).difference(*held[:k])
        assert all(beside.isdisjoint(later) for later in held[k:])


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov", "avi", "ts"])
def test_nothing_tells_what_it_was_cut_from(tmp_path: Path, suffix: str) -> None:
    whole = film(tmp_path / f"whole.{suffix}", sound="aac" if suffix != "avi" else "mp3")
    points = cut_points(whole)
    first, half = points[5], points[-3]
    cut(whole, tmp_path / f"half.{suffix}", half)
    cut(whole, tmp_path / f"a.{suffix}", first)
    cut(tmp_path / f"half.{suffix}", tmp_path / f"b.{suffix}", first)
    one = (tmp_path / f"a.{suffix}").read_bytes()
    assert (tmp_path / f"b.{suffix}").read_bytes() == one
    assert b"all 30 frames" in whole.read_bytes() or suffix == "ts"
    assert b"all 30 frames" not in one
    with av.open(str(tmp_path / f"a.{suffix}")) as container:
        assert "creation_time" not in {**container.metadata, **container.streams.video[0].metadata}


@settings(max_examples=12, deadline=None)
@given(
    group=st.integers(1, 30), between=st.integers(0, 8), pyramid=st.sampled_from(["none", "strict", "normal"]),
    adaptive=st.integers(0, 2), opened=st.integers(0, 1), refs=st.integers(1, 6), seed=st.integers(0, 5),
)  # fmt: skip
def test_the_places_are_those_where_no_frame_is_out_of_order(
    group: int, between: int, pyramid: str, adaptive: int, opened: int, refs: int, seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("film")
    options = (
        f"keyint={group}:bframes={between}:b-pyramid={pyramid}:b-adapt={adaptive}:open-gop={opened}:ref={refs}"
        ":rc-lookahead=10:threads=1"
    )
    whole = film(folder / "whole.mp4", options={"x264-params": options}, frames=24, size=32, seed=seed)
    points = cut_points(whole)
    assert points == by_times(whole)
    if group == 1 or between == 0:
        assert points == tuple(range(1, 24))
    full = shown(whole)
    for k in points[::5]:
        (folder / "cut.mp4").unlink(missing_ok=True)
        cut(whole, folder / "cut.mp4", k)
        assert shown(folder / "cut.mp4") == full[:k]


def test_frames_that_come_at_any_time_keep_their_times(tmp_path: Path) -> None:
    times = [7000 + 40 * n + 13 * (n % 3) + (900 if n > 20 else 0) for n in range(FRAMES)]
    for suffix in ("mkv", "mp4"):
        whole = film(tmp_path / f"whole.{suffix}", times=times)
        full, stored = shown(whole), packets(whole)
        for k in cut_points(whole)[::3]:
            cut(whole, tmp_path / f"{k}.{suffix}", k)
            assert shown(tmp_path / f"{k}.{suffix}") == full[:k]
            assert packets(tmp_path / f"{k}.{suffix}")[: k - 1] == stored[: k - 1]
        assert [time for time, _, _ in full] == [Fraction(time, 1000) for time in times]


def test_frames_that_are_hidden_in_others_are_not_given_away(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.webm", "libvpx-vp9", {"g": "10", "lag-in-frames": "10", "auto-alt-ref": "1"})
    assert by_times(whole) == tuple(range(1, FRAMES))
    assert cut_points(whole) == (10, 20)
    cut(whole, tmp_path / "cut.webm", 20)
    assert shown(tmp_path / "cut.webm") == shown(whole)[:20]
    assert packets(tmp_path / "cut.webm") == packets(whole)[:20]


def test_where_every_frame_stands_alone_every_place_will_do(tmp_path: Path) -> None:
    assert cut_points(film(tmp_path / "whole.mkv", "mjpeg", pixels="yuvj420p")) == tuple(range(1, FRAMES))


@pytest.mark.parametrize(("suffix", "sound"), [("mp4", "aac"), ("mkv", "flac"), ("mov", "pcm_s16le")])
def test_sound_is_kept_as_far_as_it_ends_with_the_last_frame(tmp_path: Path, suffix: str, sound: str) -> None:
    whole = film(tmp_path / f"whole.{suffix}", sound=sound)
    k = next(k for k in cut_points(whole) if k >= 20)
    cut(whole, tmp_path / f"cut.{suffix}", k)
    end = max(time + duration for time, duration, _ in packets(whole)[:k])
    heard = [one for one in packets(whole, "audio") if one[0] + one[1] <= end]
    kept = packets(tmp_path / f"cut.{suffix}", "audio")
    assert 0 < len(heard) < len(packets(whole, "audio"))
    assert b"".join(data for _, _, data in kept) == b"".join(data for _, _, data in heard)
    assert shown(tmp_path / f"cut.{suffix}") == shown(whole)[:k]


def test_sound_is_left_out_of_avi(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.avi", sound="mp3")
    cut(whole, tmp_path / "cut.avi", cut_points(whole)[5])
    with av.open(str(tmp_path / "cut.avi")) as container:
        assert [stream.type for stream in container.streams] == ["video"]


def test_a_mark_that_it_is_to_be_shown_turned_is_kept(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.mp4", turned=90)
    cut(whole, tmp_path / "cut.mp4", cut_points(whole)[3])
    for path in (whole, tmp_path / "cut.mp4"):
        with av.open(str(path)) as container:
            assert next(iter(container.decode(video=0))).rotation == 90


@pytest.mark.parametrize(("coding", "suffix", "tag"), [("mpeg4", "avi", "XVID"), ("libx265", "mp4", "hvc1")])
def test_the_tag_by_which_a_decoder_is_chosen_is_kept(tmp_path: Path, coding: str, suffix: str, tag: str) -> None:
    whole = film(tmp_path / f"whole.{suffix}", coding, tag=tag)
    full, points = shown(whole), cut_points(whole)
    for k in points[::4]:
        cut(whole, tmp_path / f"{k}.{suffix}", k)
        assert shown(tmp_path / f"{k}.{suffix}") == full[:k]
        with av.open(str(tmp_path / f"{k}.{suffix}")) as container:
            assert container.streams.video[0].codec_context.codec_tag == tag


def remuxed(source: Path, target: Path, chosen: list[bytes | int]) -> Path:
    """The packets of a video by their number, and others of one's own."""
    with av.open(str(source)) as given, av.open(str(target), "w") as sink:
        stream = sink.add_stream_from_template(given.streams.video[0])
        stored = [packet for packet in given.demux(video=0) if packet.size]
        for place, one in enumerate(chosen):
            packet = stored[one] if isinstance(one, int) else av.Packet(one)
            packet.pts = packet.dts = place
            packet.time_base, packet.duration, packet.stream = Fraction(1, 25), 1, stream
            sink.mux(packet)
    return target


def test_what_cannot_be_cut_is_told_with_its_reason(tmp_path: Path) -> None:
    drawn = film(tmp_path / "drawn.avi", "mpeg4")
    stored = [data for _, _, data in packets(drawn)]
    packed = remuxed(drawn, tmp_path / "packed.avi", [0, stored[1] + stored[2], 3])
    plain = film(tmp_path / "plain.mkv", options={"bf": "0", "g": "50"})
    headless = remuxed(plain, tmp_path / "headless.mkv", [1, 2, 3])
    hiding = film(tmp_path / "hiding.mp4", options={"bf": "0"}, times=[40 * n - 200 for n in range(FRAMES)])
    reasons = {
        packed: "packet 1 holds several frames, or none",
        headless: "its first frame is made from others that are not in the file",
        hiding: "its edit list hides frames",
    }
    for path, reason in reasons.items():
        with pytest.raises(UsageError) as caught:
            cut_points(path)
        assert caught.value.what == f"the video cannot be cut: {reason}"
        assert caught.value.where == str(path)
        assert caught.value.remedy == "write it anew, as in: ffmpeg -i OLD -an -c:v libx264 NEW.mp4"


def test_packets_that_show_nothing_are_counted(tmp_path: Path) -> None:
    plain = film(tmp_path / "plain.mkv", "mpeg4", {"bf": "0"})
    nothing_new = b"\x00\x00\x01\xb6\x50\xcf"
    with pytest.raises(UsageError, match="the video cannot be cut: its 4 packets show 3 frames"):
        cut_points(remuxed(plain, tmp_path / "gap.mkv", [0, nothing_new, 1, 2]))


def test_what_a_container_cannot_hold_is_told(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.mp4")
    with pytest.raises(UsageError, match=r"the video cannot be cut: a \.txt file cannot hold it"):
        cut(whole, tmp_path / "cut.txt", 1)
    with pytest.raises(UsageError, match=r"the video cannot be cut: a \.webm file cannot hold it"):
        cut(whole, tmp_path / "cut.webm", 1)
    untimed = film(tmp_path / "untimed.mpg", options={"bf": "2"})
    with pytest.raises(UsageError, match="the video cannot be cut: some of its packets have no time"):
        cut(untimed, tmp_path / "cut.mpg", 20)


def test_more_frames_than_there_are(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.mp4")
    with pytest.raises(UsageError) as caught:
        cut(whole, tmp_path / "cut.mp4", FRAMES + 1)
    assert caught.value.what == "the video has 30 frames, 31 were asked for"
    assert not (tmp_path / "cut.mp4").exists()


def test_a_full_disk_is_the_hosts(tmp_path: Path) -> None:
    whole = film(tmp_path / "whole.ts")
    (tmp_path / "cut.ts").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        cut(whole, tmp_path / "cut.ts", 20)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "cut.ts"))
