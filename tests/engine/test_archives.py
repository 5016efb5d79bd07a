"""The table of archives on the real engine: the good ones load, the odd ones get their sentence and leave nothing."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engine import Engine, EngineRefusal, ImageMissing
from runner.images import Unusable, load_archive
from tests.archives import GOOD, IMAGE, LIMIT, ODD, SAVED, Image, docker_entries, layer, tar_of
from tests.engine.conftest import proctor

pytestmark = pytest.mark.engine


@pytest.fixture
def clean(engine: Engine) -> Iterator[None]:
    """Without the image, before and after."""
    engine.remove_image(IMAGE.id)
    yield
    engine.remove_image(IMAGE.id)


def load(engine: Engine, folder: Path, data: bytes) -> str:
    path = folder / "image.tar"
    path.write_bytes(data)
    return load_archive(engine, path, deadline=60, limit=LIMIT).facts.id


@pytest.mark.parametrize("name", GOOD)
def test_a_good_archive_is_loaded_by_id_and_gets_no_name(
    engine: Engine, clean: None, tmp_path: Path, name: str
) -> None:
    assert load(engine, tmp_path, GOOD[name]) == IMAGE.id
    facts = engine.image(IMAGE.id)
    assert (facts.entrypoint, facts.repo_tags, facts.repo_digests) == (("/run",), (), ())


def test_odd_archives_are_refused_and_leave_nothing(engine: Engine, clean: None, tmp_path: Path) -> None:
    """Also where the engine holds the very layers: it would take a damaged one then, since it does not look at it."""
    for held in (False, True):
        if held:
            load(engine, tmp_path, SAVED)
        before = set(engine.image_ids())
        for name, odd in ODD.items():
            with pytest.raises(Unusable) as caught:
                load(engine, tmp_path, odd.data)
            end = odd.sentence.rpartition("…")[2]
            assert caught.value.what.endswith(end), name
            assert set(engine.image_ids()) == before, name


def test_the_engine_itself_takes_a_damaged_layer_that_it_holds(engine: Engine, clean: None, tmp_path: Path) -> None:
    """The control of the test above: without our check the flipped byte is not found."""
    flipped = ODD["a flipped byte in a layer"].data
    load(engine, tmp_path, SAVED)
    assert IMAGE.id in engine.load([flipped], deadline=60)
    subprocess.run(["docker", "image", "rm", "--force", "team:1"], check=True, capture_output=True)


def test_a_tag_in_the_archive_leaves_the_local_one_alone(engine: Engine, clean: None, tmp_path: Path) -> None:
    base = engine.image("proctor-base:1").id
    data = tar_of(*docker_entries(RepoTags=["proctor-base:1", "proctor-helper:1"]))
    assert load(engine, tmp_path, data) == IMAGE.id
    assert engine.image("proctor-base:1").id == base
    assert engine.image(IMAGE.id).repo_tags == ()
    engine.remove_image(IMAGE.id)
    # The control: the engine itself would have given the tag away.
    name = "proctor-test/hijacked:1"
    subprocess.run(["docker", "tag", base, name], check=True)
    try:
        engine.load([tar_of(*docker_entries(RepoTags=[name]))], deadline=60)
        assert engine.image(name).id == IMAGE.id
    finally:
        subprocess.run(["docker", "image", "rm", name], check=True, capture_output=True)
    assert engine.image("proctor-base:1").id == base


def test_as_many_layers_as_we_allow_are_taken_by_the_engine(engine: Engine, tmp_path: Path) -> None:
    deep = Image(tuple(layer(f"n{number}") for number in range(125)))
    try:
        assert load(engine, tmp_path, tar_of(*docker_entries(deep))) == deep.id
    finally:
        engine.remove_image(deep.id)
    deeper = Image((*deep.layers, layer("one too many")))
    try:
        with pytest.raises(EngineRefusal, match="max depth exceeded"):
            engine.load([tar_of(*docker_entries(deeper, RepoTags=None))], deadline=60)
    finally:
        engine.remove_image(deeper.id)


@pytest.fixture
def named(engine: Engine, clean: None, tmp_path: Path) -> Iterator[str]:
    """The image under a name, for programs that save by name; gone at the end."""
    load(engine, tmp_path, SAVED)
    name = "proctor-test/saved:1"
    subprocess.run(["docker", "tag", IMAGE.id, name], check=True)
    yield name
    engine.remove_image(name)


@pytest.mark.registry
@pytest.mark.parametrize(
    ("to", "options"),
    [
        ("oci-archive:{}:name:1", []),
        ("oci-archive:{}", ["--dest-compress-format", "zstd"]),
        ("docker-archive:{}:team:1", []),
        ("docker-archive:{}", []),
    ],
)
def test_what_skopeo_writes_gives_the_same_layers(
    engine: Engine, named: str, tmp_path: Path, to: str, options: list[str]
) -> None:
    """Podman writes archives with the same library, which writes the configuration of an OCI image anew."""
    path = tmp_path / "saved.tar"
    command = ["skopeo", "copy", "--quiet", *options, f"docker-daemon:{named}", to.format(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\nrun: make registry-tools"
    loaded = load_archive(engine, path, deadline=60)
    assert loaded.facts.entrypoint == ("/run",)
    if loaded.facts.id != IMAGE.id:
        assert to.startswith("oci-archive"), "the configuration of a docker archive stays as it is"
        engine.remove_image(loaded.facts.id)


def test_what_docker_save_writes_gives_the_same_image(engine: Engine, named: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.tar"
    subprocess.run(["docker", "save", "-o", str(path), named], check=True)
    assert load_archive(engine, path, deadline=60).facts.id == IMAGE.id


def test_an_image_that_is_not_there_is_missing(engine: Engine, clean: None) -> None:
    with pytest.raises(ImageMissing):
        engine.image(IMAGE.id)


def test_check_rejects_a_damaged_archive_at_its_first_stage(tmp_path: Path) -> None:
    (tmp_path / "mine.tar").write_bytes(ODD["a flipped byte in a layer"].data)
    ran = proctor("check", tmp_path / "mine.tar", "--challenge", "pitvis2023")
    assert ran.code == 1, ran.out + ran.err
    assert "image         bad-image: image archive 'mine.tar' is damaged: layer 'l1/layer.tar'" in ran.out
    assert "docker save IMAGE -o FILE" in ran.out
    assert "preflight      (not reached)" in ran.out
