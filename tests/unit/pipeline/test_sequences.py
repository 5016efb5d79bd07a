"""A clip of a video and its prefixes are cut from one copy, and show what the video shows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest

from runner.challenge import InputKind
from runner.dataset import Case, Input
from runner.errors import HostFault
from runner.inputs import CaseView, lay_out
from runner.job import Cut, CutKind
from runner.pipeline import sequences
from runner.pipeline.sequences import Examined, with_copies

VIDEO = Path(__file__).resolve().parents[3] / "challenges" / "petraw2021" / "sample" / "videos" / "001.mp4"


@pytest.fixture
def tested(make_case: Callable[..., Case]) -> Examined:
    """A clip of five frames of the sample's video."""
    given = Input(name="video", kind=InputKind.VIDEO, path=VIDEO, inside="{case}/video.mp4")
    case = replace(make_case("A", frames=20), inputs=(given,))
    return Examined(case=case, frames=5, clip=True, copied=True, videos=(given,))


def pictures(path: Path, count: int) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        frames = [
            frame.to_ndarray(format="rgb24") for _, frame in zip(range(count), container.decode(video=0), strict=False)
        ]
    assert len(frames) == count
    return frames


def packets(path: Path) -> list[bytes]:
    with av.open(str(path)) as container:
        return [bytes(packet) for packet in container.demux(container.streams.video[0]) if packet.size]


def test_prefixes_are_cut_from_the_copy(tested: Examined, tmp_path: Path) -> None:
    copied = with_copies(tested, tmp_path)
    assert copied.copies["video"].frames == 5
    shown = {}
    for frames in (1, 3, 5):
        cut = Cut(frames=frames, kind=CutKind.CLIP)
        view = CaseView(case=copied.case, cut=cut, copies=copied.copies)
        lay_out(tmp_path / f"view-{frames}", {"n": view}, inputs=("video",))
        shown[frames] = tmp_path / f"view-{frames}" / "n" / "video.mp4"
        lay_out(tmp_path / f"alone-{frames}", {"n": CaseView(case=copied.case, cut=cut)}, inputs=("video",))
        assert packets(shown[frames]) == packets(tmp_path / f"alone-{frames}" / "n" / "video.mp4")
    whole = packets(shown[5])
    assert [len(packets(path)) for path in shown.values()] == [1, 3, 5]
    assert all(packets(path) == whole[:frames] for frames, path in shown.items())
    for one, other in zip(pictures(shown[5], 5), pictures(VIDEO, 5), strict=True):
        assert np.array_equal(one, other)


def test_only_clips_are_copied(tested: Examined, tmp_path: Path) -> None:
    assert with_copies(replace(tested, clip=False), tmp_path).copies == {}
    assert list(tmp_path.glob("*.mp4")) == []


def test_a_copy_that_cannot_be_cut_anywhere_is_not_used(
    tested: Examined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequences, "cut_points", lambda _: (2,))
    assert with_copies(tested, tmp_path).copies == {}


def test_a_full_disk_is_the_hosts_fault(tested: Examined, tmp_path: Path) -> None:
    with pytest.raises(HostFault, match="a video could not be copied: "):
        with_copies(tested, tmp_path / "missing")
