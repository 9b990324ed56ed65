"""Take the pictures of the page for the documentation.

    python tools/screenshots.py      # writes docs/images/page-light.png and page-dark.png

Traces a matrix product, serves it, and photographs the page in Chromium.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, Python looks only into tools/

import triton_viz  # noqa: E402
from examples import matmul  # noqa: E402
from tests.browser import chromium, find_chromium, visit  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SCHEMES = ("light", "dark")


def main() -> None:
    """Write both pictures."""
    if not find_chromium():
        sys.exit("There is no Chromium here. Install it, or set CHROMIUM to a Chrome or Chromium program.")
    matmul.run()
    address = triton_viz.launch(port=0, block=False, open_browser=False)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for scheme in SCHEMES:
            with visit(browser, viewport={"width": 1440, "height": 900}, color_scheme=scheme) as seen:
                seen.page.goto(f"{address}#program=1,2,0")
                seen.page.locator("#ops button").nth(3).click()
                seen.page.mouse.move(0, 0)
                path = IMAGES / f"page-{scheme}.png"
                seen.page.screenshot(path=path)
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
