"""Draw the page of a run in Chromium: `PYTHONPATH=. python docs/images/draw_page.py` writes the pictures here."""

import tempfile
from pathlib import Path

from bench.page import CHROMIUM, large_run, write
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
TRIAL = "#golden/repair-invoice-0007"
PICTURES = {
    "page.png": ("", "light", 1200, 1120),
    "page-trial.png": (TRIAL, "dark", 1200, 1250),
    "page-narrow.png": ("#tasks", "light", 420, 800),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write(large_run(10, 5, failing=0.06, seed=4), Path(folder), None)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (anchor, scheme, width, height) in PICTURES.items():
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            tab.goto(f"{(Path(folder) / 'report.html').as_uri()}{anchor}")
            tab.screenshot(path=HERE / name)
        browser.close()


if __name__ == "__main__":
    main()
