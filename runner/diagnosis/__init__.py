"""The likely cause of a bad verdict and how to mend it, from a catalogue of known failures.

A hint decides nothing: it is added to a verdict that was reached without it. It is a constant of the catalogue; of a
container's log nothing is ever quoted, it is only searched. What fits is ranked: entries that ask for facts come before
those that go by the log's text, and those that know no more than the verdict are shown where nothing else fits.
"""

from runner.diagnosis.catalogue import CATALOGUE
from runner.diagnosis.facts import Facts, Gpu, Log, facts_of, searchable
from runner.diagnosis.known import KnownFailure, Proof, Weight, When
from runner.verdict import Hint

__all__ = [
    "CATALOGUE",
    "Facts",
    "Gpu",
    "KnownFailure",
    "Log",
    "Proof",
    "Weight",
    "When",
    "diagnose",
    "facts_of",
    "fitting",
    "searchable",
]

_SHOWN = 2


def fitting(facts: Facts) -> tuple[KnownFailure, ...]:
    """Every entry that fits, the best first; equal ones in the order of the catalogue.

    An entry that a more special one narrows, and that fits as well, is left out.
    """
    ranked = [(rank, entry) for entry in CATALOGUE if (rank := entry.rank(facts)) is not None]
    narrowed = {slug for _, entry in ranked for slug in entry.narrows}
    return tuple(entry for _, entry in sorted(ranked, key=lambda pair: pair[0]) if entry.slug not in narrowed)


def diagnose(facts: Facts) -> tuple[Hint, ...]:
    """At most two hints, the best first; none for a verdict that needs none.

    Args:
        facts: What is known of the run.
    """
    entries = fitting(facts)
    special = [entry for entry in entries if any(w.weight is not Weight.VERDICT and w.fits(facts) for w in entry.when)]
    shown = special[:_SHOWN] or entries[:1]
    return tuple(Hint(slug=entry.slug, cause=entry.cause, fix=entry.fix) for entry in shown)
