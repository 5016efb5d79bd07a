"""How an image is looked into: what is asked of the engine, how paths are followed, and where it stops."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from runner.challenge import Challenge
from runner.clock import SimulatedClock
from runner.engine import EngineRefusal, EngineUnreachable, FileFacts, FileKind, ImageMissing, RefusalPhase
from runner.engine.fake import FakeBox, FakeEngine
from runner.engine.fake_files import FakeTree, file, folder, link
from runner.ownership import LABEL_OWNER, is_our_name
from runner.preflight import Contents, look, preflight
from runner.preflight.contents import Found
from runner.preflight.tree import Tree, Undecided
from tests.unit.preflight.conftest import debian, elf

if TYPE_CHECKING:
    from tests.unit.preflight.conftest import Look

LABELS = {LABEL_OWNER: "me"}


def never(_: FakeBox) -> int:
    raise AssertionError("an image must not be started to look into it")


@pytest.fixture
def fake() -> FakeEngine:
    return FakeEngine(SimulatedClock())


def test_a_container_is_made_never_started_and_removed(
    fake: FakeEngine, make_challenge: Callable[..., Challenge]
) -> None:
    image_id = fake.add_image("i", never, entrypoint=("/app/run",), working_dir="/app", volumes=("/cache/", "/models"))
    contents = look(fake, fake.image(image_id), make_challenge(), labels=LABELS)
    assert contents.programs[0].found.kind is FileKind.FILE
    assert fake.containers(LABEL_OWNER) == ()
    (spec,) = fake.created
    assert is_our_name(spec.name)
    assert (spec.image_id, spec.labels, spec.entrypoint, spec.command) == (image_id, LABELS, ("/",), ())
    assert (spec.working_dir, spec.network, spec.read_only, spec.user) == ("/", "none", True, "65534:65534")
    # A VOLUME is covered, or the engine would copy what lies there, whatever its size.
    assert [mount.target for mount in spec.tmpfs] == ["/cache", "/models"]


@pytest.mark.parametrize("changes", [{"os": "windows"}, {"volumes": ("/",)}, {"volumes": ("/x/../proc",)}])
def test_image_that_is_refused_anyway_and_may_make_no_container_is_not_looked_into(
    fake: FakeEngine, make_challenge: Callable[..., Challenge], changes: dict[str, tuple[str, ...]]
) -> None:
    image = replace(fake.image(fake.add_image("i", never)), **changes)  # type: ignore[arg-type]
    assert look(fake, image, make_challenge(), labels=LABELS) == Contents()
    assert fake.created == []


def test_engine_that_makes_no_container_of_it_is_noted(
    fake: FakeEngine, make_challenge: Callable[..., Challenge]
) -> None:
    image = fake.image(fake.add_image("i", never, entrypoint=("run",)))
    fake.fail_next("create", EngineRefusal(RefusalPhase.CREATE, "no way", status=400))
    contents = look(fake, image, make_challenge(), labels=LABELS)
    assert contents == Contents(unread="no way")
    assert {finding.severity.value for finding in preflight(image, make_challenge(), contents)} == {"note"}


def test_container_is_removed_where_a_file_cannot_be_read(
    fake: FakeEngine, make_challenge: Callable[..., Challenge]
) -> None:
    image = fake.image(fake.add_image("i", never))
    fake.fail_next("read_file", EngineUnreachable("gone"))
    with pytest.raises(EngineUnreachable):
        look(fake, image, make_challenge(), labels=LABELS)
    assert fake.containers(LABEL_OWNER) == ()
    assert len(fake.created) == 1


def test_missing_image_is_the_callers_business(fake: FakeEngine, make_challenge: Callable[..., Challenge]) -> None:
    image = fake.image(fake.add_image("i", never))
    fake.remove_image("i")
    with pytest.raises(ImageMissing):
        look(fake, image, make_challenge(), labels=LABELS)


def test_ordinary_image_costs_few_looks_and_fewer_reads(look: "Look") -> None:
    look.contents(debian(**{"app/predict.py": file(b"x" * 99)}), entrypoint=("python3", "predict.py"))
    assert len(look.asked) < 30
    assert [path for path, most in look.asked if most] == ["/usr/bin/python3.11"]
    assert max(most for _, most in look.asked) == 16 << 10
    assert not [path for path, _ in look.asked if "cuda" in path or "torch" in path]
    places = [path for path, most in look.asked if not most]
    assert len(places) == len(set(places))


def test_hostile_path_costs_no_more_than_a_bound(look: "Look") -> None:
    for folders, looks in ((256, 160), (257, 10), (100_000, 10)):
        look.asked.clear()
        many = ":".join(f"/{number}" for number in range(folders))
        contents = look.contents(debian(), entrypoint=("run",), environment=(f"PATH={many}",))
        assert contents.programs == ()
        assert len(look.asked) <= looks
    assert look.told(debian(), entrypoint=("run",), environment=("PATH=" + "/1:" * 255,))[0][2] == "'run'"


def test_engine_that_shows_no_root_leaves_everything_open(make_challenge: Callable[..., Challenge]) -> None:
    tree = Tree(lambda _path, _most: None)
    with pytest.raises(Undecided):
        tree.find("/etc")


# Paths


def found(files: Mapping[str, FileFacts], path: str) -> Found:
    fakes = FakeTree(files)

    def read(place: str, most: int) -> FileFacts | None:
        assert place.startswith("/")
        return fakes.at(place, max_bytes=most)

    return Tree(read, open_places=("/data/inputs",)).find(path)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/", "/"),
        ("/a/b/run", "/a/b/run"),
        ("//a/./b//run/", "/a/b/run"),
        ("/a/../a/b/run", "/a/b/run"),
        ("/../../a/b/run", "/a/b/run"),
        ("/to-b/run", "/a/b/run"),
        ("/to-b/../x", "/a/x"),  # the folder above where the link leads, not above the link
        ("/a/up/x", "/x"),
        ("/to-root", "/"),
        ("/to-root/x", "/x"),
        ("/chain", "/a/b/run"),
        ("/a/b/relative", "/a/x"),
        ("/none", ""),
        ("/a/b/run/none", ""),
        ("/loop", ""),
        ("/loop-1/x", ""),
        ("/dangling", ""),
    ],
)
def test_where_a_path_ends(path: str, place: str) -> None:
    files = {
        "/a/b/run": file(b"r"),
        "/a/x": file(),
        "/x": file(),
        "/to-b": link("/a/b"),
        "/a/up": link(".."),
        "/to-root": link("/"),
        "/chain": link("chain-1"),
        "/chain-1": link("/to-b/run"),
        "/a/b/relative": link("../x"),
        "/loop": link("loop"),
        "/loop-1": link("/loop-2"),
        "/loop-2": link("/loop-1"),
        "/dangling": link("/none"),
    }
    at = found(files, path)
    assert at.place == place
    assert (at.kind is None) is (place == "")


def test_forty_links_are_followed_as_linux_does() -> None:
    chain = {f"/{number}": link(f"/{number + 1}") for number in range(41)} | {"/41": file()}
    assert found(chain, "/1").place == "/41"
    assert found(chain, "/0").kind is None


def test_what_is_on_the_way_is_told() -> None:
    files = {"/a": folder(0o750), "/a/b": folder(0o700), "/a/b/run": file(b"r", mode=0o755), "/l": link("/a/b")}
    at = found(files, "/l/run")
    assert (at.path, at.trail, at.place, at.closed) == ("/l/run", ("/l", "/a", "/a/b", "/a/b/run"), "/a/b/run", "/a")
    assert (at.linked, at.blocked, at.kind, at.mode, at.size) == (True, "", FileKind.FILE, 0o755, 1)
    # What a folder's own mode says counts for what is in it.
    assert found(files, "/a").closed == ""
    blocked = found(files, "/a/b/run/x")
    assert (blocked.blocked, blocked.kind, blocked.linked) == ("/a/b/run", None, False)


@pytest.mark.parametrize(
    ("path", "end"),
    [("/proc/self/exe", "/proc/self/exe"), ("/dev/x", "/dev/x"), ("/sys/x", "/sys/x"),
     ("/data/inputs/x/y", "/data/inputs/x/y"), ("/data/inputs", "/data/inputs"), ("/in/x", "/data/inputs/x")],
)  # fmt: skip
def test_what_only_the_running_container_has_is_left_open(path: str, end: str) -> None:
    at = found({"/usr/x": file(), "/in": link("/data/inputs")}, path)
    assert (at.open, at.kind, at.end, at.place) == (True, None, end, "")


@pytest.mark.parametrize("path", ["/bad\ufffd", "/nul\0", "/" + "x" * 4096, "/odd/x", "/bad"])
def test_what_is_not_to_be_told(path: str) -> None:
    files = {"/usr/x": file(), "/odd": replace(link("x"), link=""), "/bad": link("/x\ufffd")}
    with pytest.raises(Undecided):
        found(files, path)


def test_what_lies_beside_an_open_place_is_missing() -> None:
    assert not found({"/data/x": file()}, "/data/inputs2").open
    assert found({"/proc/1": file()}, "/proc/1").kind is FileKind.FILE


def test_content_is_read_of_files_only() -> None:
    asked = []
    files = {"/run": file(elf()), "/empty": file(), "/folder/x": file()}

    def read(path: str, most: int) -> FileFacts | None:
        asked.append((path, most))
        return FakeTree(files).at(path, max_bytes=most)

    tree = Tree(read)
    assert tree.content(tree.find("/run"), 4) == b"\x7fELF"
    assert tree.content(tree.find("/empty"), 4) == b""
    assert tree.content(tree.find("/folder"), 4) == b""
    assert [place for place, most in asked if most] == ["/run"]
