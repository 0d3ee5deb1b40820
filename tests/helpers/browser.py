"""What a headless Chromium makes of a page."""

import shutil
from typing import NamedTuple

import pytest


class Seen(NamedTuple):
    complaints: list  # of the console, of scripts, of what could not be fetched
    image_widths: list  # 0 where one does not show
    overflow: int  # pixels that the page is wider than the window
    requests: list  # addresses that the page asked for, beside itself
    num_scripts: int
    text: str


def look_at(path, width=1200):
    """Open a file and look; the test is skipped where no browser is installed."""
    browser = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if browser is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    complaints, requests = [], []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url[:80]))
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(path.as_uri())
        widths = page.eval_on_selector_all(
            "img", "images => images.map(image => image.complete ? image.naturalWidth : 0)"
        )
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        num_scripts = page.locator("script").count()
        text = page.inner_text("body")
        chromium.close()
    asked = [url for url in requests if url != path.as_uri() and not url.startswith("data:")]
    return Seen(complaints, widths, overflow, asked, num_scripts, text)
