"""Fetches an image from its registry: whose doing a failure is, and whether to ask again.

All that an engine says of a failed pull is a line of text, in which it quotes the registry. So the text is sorted by
``FAULTS``, first match first, with the image's own name taken out of it. A registry chooses its words, and may be the
participant's: all they can win by it is that their own image stays pending. What nobody knows is the host's, never the
participant's.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from runner.clock import Clock
from runner.engine import (
    Engine,
    EngineRefusal,
    EngineUnreachable,
    ImageFacts,
    ImageTooLarge,
    Overdue,
)
from runner.errors import HostFault, Interrupted, UsageError
from runner.images.refusal import Unusable, quoted
from runner.quantities import show_bytes
from runner.verdict import Blame

MOST_TRIES = 7
_FIRST_WAIT = 1.0
_LOOK_EVERY = 0.5
_TELL_EVERY = 5.0


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A way a pull fails.

    Attributes:
        name: In a word.
        marks: What the engine's text has where it failed so.
        blame: Whose doing it is, once it has been tried often enough.
        tries: How often it is tried in all.
        what: What it means; the engine's words follow.
        remedy: The next thing to do.
    """

    name: str
    marks: re.Pattern[str]
    blame: Blame
    tries: int
    what: str
    remedy: str


def _marks(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_RESUME = "then: proctor resume RUN"
FAULTS = (
    Fault(
        name="disk", marks=_marks(r"no space left on device", r"disk quota exceeded"),
        blame=Blame.HOST, tries=1, what="the engine's disk is full",
        remedy=f"make room where it keeps images (docker info: Docker Root Dir), {_RESUME}",
    ),
    Fault(
        name="rate limit", marks=_marks(r"^toomanyrequests", r"HTTP 429", r"429 Too Many", r"pull rate limit"),
        blame=Blame.HOST, tries=MOST_TRIES, what="the registry lets this host pull no more for now",
        remedy=f"wait, or log in for a higher limit (docker login), {_RESUME}",
    ),
    Fault(
        name="credentials",
        marks=_marks(
            r"^credentials: ", r"unauthorized", r"no basic auth credentials", r"authentication required", r"\bdenied\b",
            r"incorrect username or password", r"forbidden", r"HTTP 40[13]\b", r"HTTP status: 40[13]\b",
        ),
        blame=Blame.ORGANISER, tries=1, what="the registry does not let this user have it, or there is no such image",
        remedy="log in as the user who runs proctor: docker login REGISTRY; the image's maker may have to give access",
    ),
    Fault(
        name="trust",
        marks=_marks(r"x509: ", r"certificate", r"server gave HTTP response to HTTPS client"),
        blame=Blame.ORGANISER, tries=1, what="the engine does not trust the registry",
        remedy="give the engine the registry's certificate, or name it in insecure-registries of daemon.json",
    ),
    Fault(
        name="reference", marks=_marks(
            r"invalid reference format", r"invalid (?:repository|index) name", r"cannot contain a scheme"
        ),
        blame=Blame.ORGANISER, tries=1, what="this is no name of an image",
        remedy="mend the name in the submissions file",
    ),
    Fault(
        name="spoilt", marks=_marks(r"verification failed", r"does not match (?:the )?digest", r"unexpected digest"),
        blame=Blame.PARTICIPANT, tries=3, what="what the registry sends is not what its digest says",
        remedy="push the image again",
    ),
    Fault(
        name="partial", marks=_marks(r"unknown blob", r"blob unknown"),
        blame=Blame.PARTICIPANT, tries=3, what="the registry has only a part of it",
        remedy="push the image again",
    ),
    Fault(
        name="missing", marks=_marks(r"manifest unknown", r"name unknown", r"not found$", r"repository does not exist"),
        blame=Blame.PARTICIPANT, tries=1, what="the registry has no such image",
        remedy="check the name and the tag, and push the image",
    ),
    Fault(
        name="platform", marks=_marks(r"no matching manifest for"),
        blame=Blame.PARTICIPANT, tries=1, what="the registry has it, but not for this platform",
        remedy="build it for the challenge's platform: docker build --platform linux/amd64 …",
    ),
    Fault(
        name="unusable",
        marks=_marks(
            r"unsupported (?:media ?type|manifest)", r"mediaType in manifest should be", r"max depth exceeded",
            r"schema (?:version )?1\b.*(?:deprecated|removed|not supported|unsupported)", r"archive/tar: ",
        ),
        blame=Blame.PARTICIPANT, tries=1, what="the engine cannot make an image of what the registry sends",
        remedy="build it anew with docker build, and push it",
    ),
)  # fmt: skip
UNKNOWN = Fault(
    name="outage", marks=_marks(""), blame=Blame.HOST, tries=MOST_TRIES,
    what="the registry does not give it", remedy=f"see that the registry is up and this host reaches it, {_RESUME}",
)  # fmt: skip
ENGINE_AWAY = Fault(
    name="engine", marks=_marks(""), blame=Blame.HOST, tries=MOST_TRIES,
    what="the engine gives no answer", remedy=f"see: proctor doctor, {_RESUME}",
)  # fmt: skip


def fault_of(message: str, reference: str) -> Fault:
    """Which fault the engine's text tells of; the image's own name in it counts for nothing."""
    name = reference.partition("@")[0]
    repository, colon, tag = name.rpartition(":")
    for own in (reference, name, repository if colon and "/" not in tag else name):
        message = message.replace(own, "IMAGE")
    return next((fault for fault in FAULTS if fault.marks.search(message)), UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """What was fetched; ``new`` where the engine did not hold it before."""

    facts: ImageFacts
    new: bool


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How a pull is waited for.

    Attributes:
        deadline: Seconds for all tries together.
        clock: Measures them.
        stop: Set when the user asks us to stop.
    """

    deadline: float
    clock: Clock
    stop: threading.Event | None = None

    def sleep(self, seconds: float) -> None:
        """Wait, unless the user asks us to stop."""
        ends = self.clock.now() + seconds
        while (left := ends - self.clock.now()) > 0:
            self.require_going()
            self.clock.sleep(min(left, _LOOK_EVERY))

    def require_going(self) -> None:
        """Raise where the user has asked us to stop."""
        if self.stop is not None and self.stop.is_set():
            raise Interrupted("stopped", remedy="go on with: proctor resume RUN")


def pull_image(
    engine: Engine,
    reference: str,
    *,
    limit: int,
    patience: Patience,
    progress: Callable[[str], None],
    where: str = "",
) -> Pulled:
    """Fetch an image, again after failures that may pass, each time after twice the wait.

    Args:
        engine: Who fetches and holds it.
        reference: Name with tag or digest.
        limit: Bytes its layers may have, packed and unpacked.
        patience: How long.
        progress: Is told what happens, now and then.
        where: Place of the text, for errors.

    Raises:
        Unusable: The registry has no such image, or none that can be run.
        UsageError: Credentials, trust or the name: the organisers' to mend.
        HostFault: The registry or the engine did not answer, or lets us pull no more.
    """
    ends = patience.clock.now() + patience.deadline
    tell = _sparing(progress, patience)
    held = frozenset(engine.image_ids())
    tried = 0
    while True:
        tried += 1
        try:
            facts = engine.pull(reference, deadline=max(0.0, ends - patience.clock.now()), progress=tell, limit=limit)
        except ImageTooLarge as error:
            raise _too_large(reference, f"{show_bytes(error.size)} of packed layers or more", limit) from error
        except Overdue as error:
            raise HostFault(
                f"image {_shown(reference)} could not be had within {patience.deadline:g} s: the registry is too slow",
                where=where,
                remedy=f"give it longer with pull_deadline, {_RESUME}",
            ) from error
        except (EngineRefusal, EngineUnreachable) as error:
            wait = _FIRST_WAIT * 2 ** (tried - 1)
            fault = fault_of(error.message, reference) if isinstance(error, EngineRefusal) else ENGINE_AWAY
            if tried >= fault.tries or patience.clock.now() + wait >= ends:
                raise _told(fault, reference, error, tried, where) from error
            progress(f"{fault.what}; try {tried + 1} of {fault.tries} in {wait:g} s")
            patience.sleep(wait)
            continue
        pulled = Pulled(facts=facts, new=facts.id not in held)
        if facts.size > limit:
            if pulled.new:
                engine.remove_image(facts.id)
            raise _too_large(reference, show_bytes(facts.size), limit)
        return pulled


def _shown(reference: str) -> str:
    return quoted(reference, most=300)


def _too_large(reference: str, size: str, limit: int) -> Unusable:
    return Unusable(
        f"image {_shown(reference)} is too large: {size}; {show_bytes(limit)} are allowed here",
        remedy="make the image smaller, or ask the organisers for a higher ceiling.image_size",
    )


def _told(fault: Fault, reference: str, error: EngineRefusal | EngineUnreachable, tried: int, where: str) -> Exception:
    said = error.message if isinstance(error, EngineRefusal) else error.what
    times = f", {tried} times" if tried > 1 else ""
    what = f"image {_shown(reference)}: {fault.what} (the engine says{times}: {quoted(said, most=300)})"
    match fault.blame:
        case Blame.PARTICIPANT:
            return Unusable(what, remedy=fault.remedy)
        case Blame.ORGANISER:
            return UsageError(what, where=where, remedy=fault.remedy)
        case _:
            return HostFault(what, where=where, remedy=fault.remedy)


def _sparing(progress: Callable[[str], None], patience: Patience) -> Callable[[str], None]:
    """Pass on a line every few seconds: an engine tells of every half megabyte."""
    last = -_TELL_EVERY

    def tell(line: str) -> None:
        nonlocal last
        patience.require_going()
        if patience.clock.now() - last >= _TELL_EVERY:
            last = patience.clock.now()
            progress(line)

    return tell
