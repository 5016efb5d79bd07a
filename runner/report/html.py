"""One HTML file that needs no network, no script and no other file.

Everything that strangers named is made visible first (``safe_text``) and then escaped by Jinja; both happen to every
expression of the template, not where somebody remembered. In its Content-Security-Policy the page forbids itself
everything, scripts and requests, but its own style sheet, named by its hash.
"""

import base64
import hashlib
import math
from collections.abc import Callable
from functools import cache
from importlib import resources
from itertools import count

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from runner.report.cut_drawing import draw_causality
from runner.report.drawing import draw_ribbon, place
from runner.report.latency_drawing import draw_histogram, draw_time_line, latency_facts
from runner.report.view import ReportView, Tone
from runner.safe_text import for_plain

FEW_RIBBONS = 60
"""Up to so many, all cases are unfolded from the start."""

_SYMBOLS = {Tone.GOOD: "✓", Tone.BAD: "✕", Tone.WARNING: "!", Tone.WAITING: "…", Tone.NEUTRAL: "–"}


def render(view: ReportView) -> str:
    """The report as one HTML document; the same view gives the same text, byte for byte."""
    style = _resource("report.css")
    ribbons = sum(len(case.ribbons) for s in view.submissions for task in s.tasks for case in task.cases)
    text = _page().render(
        view=view,
        anchors={s.submission: f"s{position}" for position, s in enumerate(view.submissions, start=1)},
        style=Markup(style),  # noqa: S704  our own file
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        unfolded=ribbons <= FEW_RIBBONS,
        next_id=_ids(),
    )
    return text.lstrip()


def number(value: float | None, decimals: int = 3) -> str:
    """A number with fixed decimals, a true minus sign, and a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{decimals}f}".replace("-", "−")


def _ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"p{next(numbers)}"


def _resource(name: str) -> str:
    return resources.files("runner.report").joinpath("templates", name).read_text(encoding="utf-8")


def _visible(value: object) -> object:
    return for_plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _page() -> Template:
    return _environment().from_string(_resource("report.html.j2"))


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True, finalize=_visible, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number}
    environment.globals |= {
        "draw_ribbon": draw_ribbon,
        "draw_causality": draw_causality,
        "draw_histogram": draw_histogram,
        "draw_time_line": draw_time_line,
        "latency_facts": latency_facts,
        "place": place,
        "symbols": {tone.value: symbol for tone, symbol in _SYMBOLS.items()},
    }
    return environment
