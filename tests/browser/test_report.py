"""The report in a browser: quiet, offline, readable at any width, by day and by night."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from runner.report import ReportView, render

pytestmark = pytest.mark.browser

CHROMIUM = "/usr/bin/chromium"
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(view: ReportView, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render(view), encoding="utf-8")
    return file


def opened(context: BrowserContext, file: Path) -> tuple[Page, list[str]]:
    """The page, and everything it should not have done."""
    page = context.new_page()
    wrongs: list[str] = []
    page.on("console", lambda message: wrongs.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrongs.append(f"error: {error}"))
    page.on("dialog", lambda dialog: wrongs.append(f"dialog: {dialog.message}"))
    allowed = {file.as_uri(), "data:,"}
    page.on("request", lambda request: None if request.url in allowed else wrongs.append(f"request: {request.url}"))
    page.goto(file.as_uri())
    return page, wrongs


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_is_asked_for_and_nothing_sticks_out(
    browser: Browser, page_file: Path, tmp_path: Path, width: int, scheme: Scheme
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, wrongs = opened(context, page_file)
    page.screenshot(path=tmp_path / f"report-{width}-{scheme}.png", full_page=True)
    assert wrongs == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("script").count() == 0
    assert page.locator("img").count() == 0
    context.close()


def test_the_keyboard_reaches_the_results_first(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser.new_context(viewport={"width": 1440, "height": 900}), page_file)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.context.close()


def test_a_reader_without_sight_finds_names_for_everything(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser.new_context(), page_file)
    assert page.locator("table").count() == page.locator("table > caption").count() > 0
    assert page.locator("th:not([scope])").count() == 0
    pictures = page.locator("svg[role=img]")
    # a ribbon a case that has one, a picture a causality check, two strips, two pictures of latency for three entries
    assert pictures.count() == 34 + 2 + 6
    for title in page.locator("figure > svg > title").all_text_contents():
        assert title
    assert "they agree on" in (page.locator("figure desc").first.text_content() or "")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    page.context.close()


def test_the_style_sheet_is_the_one_the_policy_names(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser.new_context(color_scheme="light"), page_file)
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).borderRadius") == "12px"
    page.context.close()


def test_it_prints(browser: Browser, page_file: Path, tmp_path: Path) -> None:
    page, wrongs = opened(browser.new_context(), page_file)
    page.pdf(path=tmp_path / "report.pdf", format="A4", prefer_css_page_size=True)
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert wrongs == []
    page.context.close()


TEXTS_OUT_OF_PLACE = """
() => [...document.querySelectorAll('figure svg[role=img], figure svg.scale')].flatMap(picture => {
  const frame = picture.getBoundingClientRect();
  const texts = [...picture.querySelectorAll('text:not(.on)')]
    .map(text => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
  const outside = texts.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1).map(([text]) => `outside: ${text}`);
  const over = texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([, b]) =>
    a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
    .map(([other]) => `${one} over ${other}`));
  return [...outside, ...over];
})
"""


@pytest.mark.parametrize("width", [1440, 390])
def test_no_text_of_a_picture_is_cut_off_or_lies_on_another(browser: Browser, page_file: Path, width: int) -> None:
    page, _ = opened(browser.new_context(viewport={"width": width, "height": 900}), page_file)
    assert page.locator("figure text.over").count() == 6
    assert page.evaluate(TEXTS_OUT_OF_PLACE) == []
    page.context.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_views_end_where_they_were_cut(browser: Browser, page_file: Path, width: int) -> None:
    page, _ = opened(browser.new_context(viewport={"width": width, "height": 900}), page_file)
    picture = page.locator("figure:has(.veil):has(.leak) > svg").first
    places = picture.evaluate(
        """picture => {
          const { left, width } = picture.getBoundingClientRect();
          const share = edge => Math.round(1000 * (edge - left) / width);
          const rights = band => [...band.querySelectorAll('rect')].map(rect => rect.getBoundingClientRect().right);
          const bands = [...picture.querySelectorAll('.band')].map(band => share(Math.max(...rights(band))));
          const veil = picture.querySelector('.veil').getBoundingClientRect();
          const differs = [...picture.querySelectorAll('.thin rect')].map(rect => rect.getBoundingClientRect());
          const leak = picture.querySelector('line.leak').getBoundingClientRect();
          return { bands, veil: [share(veil.left), share(veil.right)],
            differs: differs.map(box => [share(box.left), share(box.right)]),
            leak: share((leak.left + leak.right) / 2) };
        }"""
    )
    assert places["bands"] == pytest.approx([1000, 200, 403, 607, 1000], abs=4)
    assert places["veil"] == pytest.approx([607, 1000], abs=2)
    assert [edge for pair in places["differs"] for edge in pair] == pytest.approx([593, 607] * 2, abs=4)
    assert places["leak"] == pytest.approx(595, abs=2)
    page.context.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_the_time_line_fills_its_plot(browser: Browser, page_file: Path, width: int) -> None:
    """The slow first frame stands at the left end, the unanswered ones are marked at the right."""
    page, _ = opened(browser.new_context(viewport={"width": width, "height": 900}), page_file)
    plot = page.locator(".scaled > svg[role=img]").first
    box, outline = plot.bounding_box(), plot.locator(".outline").bounding_box()
    marks = plot.locator(".late-marks").bounding_box()
    assert box is not None
    assert outline is not None
    assert marks is not None
    assert (outline["x"], outline["width"]) == pytest.approx((box["x"], box["width"]), abs=1)
    assert 20 <= outline["y"] - box["y"] < outline["y"] + outline["height"] - box["y"] <= 131
    ends = (marks["x"], marks["x"] + marks["width"])
    assert ends == pytest.approx((box["x"], box["x"] + box["width"]), abs=8)
    assert marks["y"] + marks["height"] <= outline["y"]
    page.context.close()
