"""The helper image: ours, so that probes, volume holders and janitors never run anything a participant made.

It is a base image's root file system taken out and put back without the base's settings: what a base's
ENTRYPOINT, VOLUME or ENV would do to a helper is nobody's wish. Only ``PATH`` is set. It is made once and
kept.
"""

import logging
import secrets

from runner.engine.contract import ContainerSpec, Engine, EngineRefusal, ImageFacts, ImageMissing
from runner.errors import HostUnfit

HELPER_REFERENCE = "proctor-helper:1"
HELPER_LABEL = "proctor.helper"
LOCAL_BASE = "proctor-base:1"
REGISTRY_BASE = "python:3.11-slim"

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PULL_SECONDS = 600.0
_log = logging.getLogger(__name__)


def helper_image(engine: Engine, *, base: str | None) -> str:
    """The helper image's ID; made now if the engine does not hold it.

    Args:
        engine: Where it is needed.
        base: An image with ``python3`` inside to make it of; None for ``proctor-base:1``, else
            ``python:3.11-slim``, pulled if need be. Not looked at where the helper image is there already.

    Raises:
        HostUnfit: There is no base to make it of.
    """
    try:
        present = engine.image(HELPER_REFERENCE)
    except ImageMissing:
        return _make(engine, _base(engine, base))
    # A name can be given to anything; the label says that we made it.
    if present.labels.get(HELPER_LABEL) == "1":
        return present.id
    return _make(engine, _base(engine, base))


def _base(engine: Engine, named: str | None) -> ImageFacts:
    for reference in (named,) if named else (LOCAL_BASE, REGISTRY_BASE):
        try:
            return engine.image(reference)
        except ImageMissing:
            continue
    wanted = named or REGISTRY_BASE
    try:
        return engine.pull(wanted, deadline=_PULL_SECONDS, progress=_log.debug)
    except EngineRefusal as refusal:
        raise HostUnfit(
            f"there is no image to make the helper image of: {named or LOCAL_BASE!r} is not here and"
            f" {wanted!r} cannot be pulled: {refusal.message}",
            remedy="docker pull python:3.11-slim, or name an image with Python 3 by helper_base: in the settings; in a "
            "checkout: make base",
        ) from refusal


def _make(engine: Engine, base: ImageFacts) -> str:
    _log.info("making %s of %s", HELPER_REFERENCE, base.id)
    # Never started: its command only has to be there, for engines refuse a container without one.
    spec = ContainerSpec(
        image_id=base.id,
        name=f"proctor-helper-{secrets.token_hex(4)}",
        labels={HELPER_LABEL: "1"},
        entrypoint=(),
        command=("python3",),
    )
    container = engine.create(spec)
    try:
        return engine.import_root(
            engine.export_root(container),
            reference=HELPER_REFERENCE,
            changes=(f"LABEL {HELPER_LABEL}=1", f"ENV PATH={_PATH}"),
        )
    finally:
        engine.remove(container)
