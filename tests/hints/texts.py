"""The messages of ``texts.yaml``, as values."""

from pathlib import Path

from runner.challenge.section import Section
from runner.diagnosis import Gpu
from runner.yaml_text import parse_model, read_text


class Messages(Section):
    """What is printed.

    Attributes:
        messages: Each gets the hint first.
        innocent: Lines with the same words; none gets a hint.
        given: What the container was given of GPUs.
    """

    messages: tuple[str, ...]
    innocent: tuple[str, ...]
    given: Gpu = Gpu.NOT_DUE


class Texts(Section):
    """``texts.yaml``, by slug."""

    replayed: dict[str, Messages]
    also: dict[str, Messages]


_PATH = Path(__file__).with_suffix(".yaml")
TEXTS = parse_model(_PATH, read_text(_PATH), Texts)
