"""The page: complete, inert, the same every time."""

import re
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser

import pytest

from runner.report import (
    CaseRow,
    CausalityPicture,
    CausalitySection,
    Chip,
    CutMark,
    CutState,
    Fact,
    HintLine,
    Histogram,
    Label,
    LatencySection,
    Leaderboard,
    PendingCase,
    ProblemLine,
    RankedLine,
    ReportView,
    Ribbon,
    SubmissionSection,
    TaskSection,
    Tone,
    UnrankedLine,
    ViewRibbon,
    render,
    segments_of,
)
from runner.report.html import number

VOID = {"meta", "link", "br"}


class Skeleton(HTMLParser):
    """Tags, attributes and text; fails where tags do not match."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def a_view(word: str = "plain") -> ReportView:
    """A view with every field filled, every free text being ``word``."""
    ribbon = Ribbon(
        title=word,
        frames=6,
        fps=1.0,
        labels=(Label(number=1, name=word), Label(number=2, name=word)),
        reference=segments_of([1, 1, 1, 2, 2, 2]),
        prediction=segments_of([1, 1, 2, 2, 2, 2]),
    )
    case = CaseRow(
        case=word,
        verdict=Chip(word="accepted", tone=Tone.GOOD),
        blame="nobody",
        sentence=word,
        notes=(word,),
        hints=(HintLine(cause=word, fix=word),),
        problems=(ProblemLine(place=word, what=word),),
        problem_count=3,
        run_seconds=1.25,
        limit_seconds=30.0,
        scores=(0.5, None),
        ribbons=(ribbon,),
    )
    check = CausalitySection(
        case=word,
        outcome=Chip(word="leaking", tone=Tone.BAD),
        text=word,
        facts=(Fact(name=word, value=word),),
        pictures=(
            CausalityPicture(
                full=replace(ribbon, reference=None),
                cuts=(CutMark(frames=3, random=False, state=CutState.UNDECIDED),),
                leak_frame=2,
                views=(
                    ViewRibbon(
                        kind=word, cut=4, frames=6, answers=segments_of([1, 1, 1, 2, 1, 1]), state=CutState.CHANGED
                    ),
                    ViewRibbon(kind=word, cut=3, frames=3, answers=(), state=CutState.UNDECIDED),
                ),
                full_answer=word,
                view_answer=word,
                future_frames=2,
            ),
        ),
        summary=word,
        pace=word,
        online=Chip(word="online-compatible", tone=Tone.GOOD),
    )
    latency = LatencySection(
        case=word,
        online=Chip(word="not online-compatible", tone=Tone.WARNING),
        text=word,
        start_up=1.5,
        first_frame=0.25,
        mean=0.02,
        p50=0.0123,
        p95=0.03,
        p99=0.04,
        longest=0.25,
        period=0.04,
        over_period=1,
        missed=(0, 3),
        over_time=(0.25, 0.01, 0.02, None),
        frames=4,
        histogram=Histogram(edges_ms=(0.0, 10.0, 20.0, 50.0, 100.0, float("inf")), counts=(0, 1, 1, 0, 1)),
    )
    section = SubmissionSection(
        submission=word,
        team=word,
        status="competing",
        standing=Chip(word="accepted", tone=Tone.GOOD),
        facts=(Fact(name=word, value=word),),
        tasks=(TaskSection(title=word, metrics=(word, word), cases=(case,)),),
        causality=(check,),
        latency=(latency,),
    )
    board = Leaderboard(
        title=word,
        value_name=word,
        better="higher is better",
        method=word,
        metrics=(word,),
        strip=(0.0, 1.0),
        ranked=(RankedLine(rank=1.5, team=word, submission=word, value=0.123456, metrics=(0.2,), cases=(0.1, 0.9)),),
        unranked=(UnrankedLine(team=word, submission=word, reason=word, metrics=(None,)),),
        provisional=True,
    )
    return ReportView(
        title=word,
        challenge=word,
        version=word,
        digest=word,
        banner=word,
        run=(Fact(name=word, value=word),),
        leaderboards=(board,),
        submissions=(section,),
        assumptions=(word,),
        pending=(PendingCase(submission=word, case=word, reason=word),),
    )


ATTACKS = [
    "<script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></svg><iframe src=//evil.example>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "&lt;b&gt;",
    "\u202eright to left\u2066",
    "bell\x07escape\x1b[2Jnull\x00",
    "half a pair \ud800",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_becomes_markup(attack: str) -> None:
    """The page of an attack has the very tags of a harmless page."""
    harmless, hostile = Skeleton(render(a_view())), Skeleton(render(a_view(attack)))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in harmless.tags]
    assert [sorted(attributes) for _, attributes in hostile.tags] == [sorted(a) for _, a in harmless.tags]
    assert not any(name.startswith("on") for _, attributes in hostile.tags for name in attributes)


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_reaches_a_link_or_an_id(attack: str) -> None:
    for _, attributes in Skeleton(render(a_view(attack))).tags:
        assert re.fullmatch(r"#[a-z0-9-]+|data:,", attributes.get("href") or "#a")
        assert re.fullmatch(r"[a-z0-9-]+", attributes.get("id") or "a")
        assert not {"src", "style", "srcdoc", "action"} & set(attributes)


def test_what_cannot_be_seen_is_shown() -> None:
    page = render(a_view("a\u202eb\x1bc"))
    assert "a⟨U+202E⟩b␛c" in page
    assert not set("\u202e\x1b") & set(page)


def test_a_template_in_a_name_is_not_run() -> None:
    assert "{{ 7 * 7 }}" in render(a_view("{{ 7 * 7 }}"))
    assert ">49<" not in render(a_view("{{ 7 * 7 }}"))


def test_the_page_asks_for_nothing() -> None:
    page = render(a_view())
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page
    assert "@import" not in page
    assert re.findall(r"url\((?!#h\d[abc]\)|#veil\))", page) == []
    tags = [tag for tag, _ in Skeleton(page).tags]
    assert not {"script", "iframe", "img", "object", "embed", "form", "base"} & set(tags)


def test_the_policy_forbids_everything_but_the_one_style_sheet() -> None:
    page = render(a_view())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    others = "img-src data:; base-uri 'none'; form-action 'none'"
    assert re.fullmatch(rf"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{{43}}='; {others}", policy[1])
    assert page.count("<style") == 1
    assert " style=" not in page


def test_the_same_view_gives_the_same_bytes() -> None:
    assert render(a_view()).encode() == render(a_view()).encode()
    assert render(a_view()).startswith("<!DOCTYPE html>\n")


def texts_of(value: object) -> set[str]:
    """Every string a view holds."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, tuple):
        return set().union(*(texts_of(item) for item in value))
    if is_dataclass(value):
        return set().union(*(texts_of(getattr(value, f.name)) for f in fields(value)))
    return set()


def test_every_text_of_a_view_is_on_the_page() -> None:
    view, counter = a_view("§"), iter(range(1000))

    def mark(value: object) -> object:
        if isinstance(value, str):
            return f"w{next(counter)}w" if value == "§" else value
        if isinstance(value, tuple):
            return tuple(mark(item) for item in value)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: mark(getattr(value, f.name)) for f in fields(value)})
        return value

    marked = mark(view)
    assert isinstance(marked, ReportView)
    page = Skeleton(render(marked)).text
    words = {text for text in texts_of(marked) if re.fullmatch(r"w\d+w", text)}
    assert len(words) > 30
    assert {word for word in words if word not in page} == set()


def test_numbers_are_shown_as_they_were_ranked() -> None:
    text = Skeleton(render(a_view())).text
    assert "1.5" in text
    assert "0.1235" in text
    assert "1.2 s" in text
    assert "30.0 s" in text
    assert "Problems in the file: 3, the first 1 of them" in text
    assert "provisional" in text


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.500"), (-0.25, "−0.250"), (None, "–"), (float("nan"), "–"), (float("inf"), "–")]
)
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_an_empty_view_is_a_page() -> None:
    page = render(ReportView(title="T", challenge="c", version="1", digest="sha256:0"))
    assert "No submission" not in page
    assert 'class="banner"' not in page
    assert Skeleton(page).text.count("This run") == 2
    boards = (Leaderboard(title="t", value_name="v", better="b", method="m"),)
    empty = render(ReportView(title="T", challenge="c", version="1", digest="d", leaderboards=boards))
    assert "No submission is ranked." in empty


def test_every_table_has_a_caption_and_every_header_a_scope() -> None:
    page = Skeleton(render(a_view()))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") == 3
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    for tag, attributes in page.tags:
        if tag == "svg":
            assert attributes.get("role") == "img" or "aria-hidden" in attributes or "class" in attributes


def test_rejected_cases_are_unfolded_even_in_a_long_report() -> None:
    view = a_view()
    case = view.submissions[0].tasks[0].cases[0]
    bad = replace(case, verdict=Chip(word="crashed", tone=Tone.BAD), ribbons=())
    task = replace(view.submissions[0].tasks[0], cases=(*[case] * 61, bad))
    long = replace(view, submissions=(replace(view.submissions[0], tasks=(task,)),))
    unfolded = [a for tag, a in Skeleton(render(long)).tags if tag == "details" and "open" in a]
    assert [a["id"] for a in unfolded] == ["s1-t1-62"]


def attributes_of(page: str, tag: str, kind: str) -> list[dict[str, str | None]]:
    return [a for t, a in Skeleton(page).tags if t == tag and kind in (a.get("class") or "").split()]


def test_views_are_drawn_below_the_full_run() -> None:
    page = render(a_view())
    veil, empty = attributes_of(page, "rect", "veil")[0], attributes_of(page, "rect", "empty")[0]
    assert (veil["x"], veil["width"], veil["y"], veil["height"]) == ("66.667%", "33.333%", "62", "12")
    assert (empty["width"], empty["y"]) == ("50.0%", "98")
    cuts = [(a["x1"], a["y1"], a["y2"]) for a in attributes_of(page, "line", "cut") if a["x1"] != "7"]
    assert cuts == [("66.667%", "56", "74"), ("50.0%", "92", "110")]
    assert '<g class="differs thin">\n<rect x="33.333%" y="56" width="16.667%" height="4"/>\n</g>' in page
    text = Skeleton(page).text
    assert "Frame 2 is the first that changed: plain on the full run, plain where later frames" in text
    assert "needed the 2 frames after it." in text
    assert "differs from the full run" in text
    assert "faint: other frames than in the full run" in text


def test_without_views_a_causality_picture_speaks_of_none() -> None:
    view = a_view()
    section = view.submissions[0]
    check = section.causality[0]
    bare = replace(check, pictures=(replace(check.pictures[0], views=(), full_answer="", future_frames=None),))
    page = render(replace(view, submissions=(replace(section, causality=(bare,), latency=()),)))
    for kind in ("cut", "veil", "empty", "thin"):
        assert not any(attributes_of(page, tag, kind) for tag in ("line", "rect", "g"))
    assert "<figcaption" not in page
    assert "differs from the full run" not in page


def test_a_method_that_flickers_makes_no_endless_page() -> None:
    """Ten thousand frames, each with another answer, thirty views and as many latencies: a bounded number of tags."""
    view, frames = a_view(), 10_000
    section = view.submissions[0]
    flicker, other = segments_of([n % 2 for n in range(frames)]), segments_of([n // 3 % 2 for n in range(frames)])
    ribbon = replace(section.tasks[0].cases[0].ribbons[0], frames=frames, reference=other, prediction=flicker)
    views = tuple(
        ViewRibbon(kind="First 9000 frames", cut=9000, frames=9000, answers=other[:3000], state=CutState.CHANGED)
        for _ in range(30)
    )
    picture = replace(section.causality[0].pictures[0], full=replace(ribbon, reference=None), views=views)
    latency = replace(section.latency[0], over_time=(0.02, 0.05) * (frames // 2), frames=frames)
    case = replace(section.tasks[0].cases[0], ribbons=(ribbon,))
    big = replace(
        section,
        tasks=(replace(section.tasks[0], cases=(case,)),),
        causality=(replace(section.causality[0], pictures=(picture,)),),
        latency=(latency,),
    )
    page = render(replace(view, submissions=(big,)))
    assert len(Skeleton(page).tags) < 12_000
    assert len(page) < 1_000_000


def test_the_summary_stands_before_the_cases_and_the_pace_after_the_picture() -> None:
    view = a_view()
    section = view.submissions[0]
    check = replace(section.causality[0], summary="ALL", pace="PACE", text="ONE", case="CASE")
    text = Skeleton(render(replace(view, submissions=(replace(section, causality=(check,)),)))).text
    order = [text.index(word) for word in ("ALL", "CASE", "ONE", "first changed frame", "PACE", "✓ online-compatible")]
    assert order == sorted(order)


def test_latency_is_told_in_numbers_and_in_pictures() -> None:
    page = render(a_view())
    text = Skeleton(page).text
    assert "p50 12.3 ms" in text
    assert "missed 2 of 4 frames" in text
    assert "! not online-compatible" in text
    assert [a["x"] for a in attributes_of(page, "text", "over")] == ["43.912%", "100%"]
    outlines = [a["d"] for a in attributes_of(page, "path", "outline")]
    assert outlines == ["M0 19h1v2h-1zM1 108h1v2h-1zM2 91h1v2h-1z"]
    assert next(a["d"] for a in attributes_of(page, "path", "late-marks")) == "M0.5 0v6M3.5 0v6"


def test_latency_without_pictures_is_a_list_of_numbers() -> None:
    view = a_view()
    section = replace(view.submissions[0], causality=(), tasks=())
    bare = LatencySection(case="video_01", frames=0)
    page = render(replace(view, submissions=(replace(section, latency=(bare,)),)))
    assert "start-up –" in Skeleton(page).text
    assert "<figure" not in page
