"""What may leave the house."""

from typing import Literal

from runner.challenge.section import Section


class Feedback(Section):
    """What a participant is told on hidden data, beside the verdict and our own sentence."""

    metrics: Literal["hidden", "shown"]
    logs: Literal["none"] = "none"


class Publish(Section):
    """What the public edition of a report may hold; ``consent`` names the ground for it."""

    frames: bool = False
    references: bool = False
    consent: str = ""
