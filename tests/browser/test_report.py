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
    assert pictures.count() == 34 + 2  # a ribbon a case that has one, a picture a causality check, two strips
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
