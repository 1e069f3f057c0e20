#!/usr/bin/env python3
"""Makes the pictures of this folder. Needs only the standard library of Python 3.8 or later.

    docs/images/make.py                     writes accuracy.svg, speed.svg and terminal.svg
    docs/images/make.py --check             fails if they differ from what their data gives, or if a figure is not in its note
    docs/images/make.py --report PAGE       writes report.png, parts of the HTML page of a report (needs Chromium)

results.json has the figures of the charts with their sources; terminal.txt has the output that terminal.svg shows.
"""

import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
WIDTH = 800
SANS = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# Colours of Okabe and Ito, which colour-blind readers can tell apart; lighter ones on a dark background.
STYLE = """
  svg { font-family: %s; font-size: 13px; }
  .page { fill: #ffffff; stroke: #d1d9e0; }
  text { fill: #1f2328; } .soft { fill: #59636e; } .bold { font-weight: 600; } .title { font-weight: 600; font-size: 16px; }
  .grid { stroke: #d1d9e0; } .axis { stroke: #818b98; }
  .series0 { fill: #0072b2; stroke: #0072b2; } .series1 { fill: #d55e00; stroke: #d55e00; } .series2 { fill: #009e73; stroke: #009e73; }
  text.series0, text.series1, text.series2 { stroke: none; font-weight: 600; }
  .end { text-anchor: end; } .middle { text-anchor: middle; }
  .band { stroke: none; opacity: 0.2; } .range { fill: none; stroke-width: 3; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; } .soft { fill: #9198a1; }
    .grid { stroke: #2a313c; } .axis { stroke: #656c76; }
    .series0 { fill: #56b4e9; stroke: #56b4e9; } .series1 { fill: #e69f00; stroke: #e69f00; } .series2 { fill: #2fcb9f; stroke: #2fcb9f; }
  }
""" % SANS


def text(x, y, content, classes=""):
    attribute = f' class="{classes}"' if classes else ""
    return f'<text x="{x:g}" y="{y:g}"{attribute}>{escape(content)}</text>'


def line(x1, y1, x2, y2, classes):
    return f'<path class="{classes}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>'


def document(height, title, body, style=STYLE, background="page"):
    """Returns an SVG file. The background is opaque, so that it is readable on any page."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        f'<rect class="{background}" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
        *body,
        "</svg>",
        "",
    ])


def heading(chart):
    """Returns the title and the remarks below it, and the height that they take."""
    body = [text(20, 32, chart["title"], "title")]
    y = 32
    for remark in chart["remarks"]:
        y += 20
        body.append(text(20, y, remark, "soft"))
    return body, y + 12


def accuracy(chart):
    """A dot plot for each data set, one line per program and inputs. Dots do not suggest a base at 0, as bars would."""
    inputs_left, left, right, row_height = 142, 456, 738, 25
    body, y = heading(chart)
    for panel in chart["panels"]:
        y += 26
        body.append(text(20, y, panel["title"], "bold"))
        top = y + 10
        bottom = top + row_height * len(panel["points"])

        def position(value):
            return left + (value - panel["from"]) / (panel["to"] - panel["from"]) * (right - left)

        count = round((panel["to"] - panel["from"]) / panel["step"])
        for k in range(count + 1):
            value = panel["from"] + k * panel["step"]
            x = round(position(value), 1)
            body.append(line(x, top, x, bottom, "grid"))
            body.append(text(x, bottom + 18, f"{value:.{panel['decimals']}f}", "soft middle"))
        body.append(line(left, bottom, right, bottom, "axis"))
        body.append(text((left + right) / 2, bottom + 38, panel["axis"], "soft middle"))
        for k, point in enumerate(panel["points"]):
            at = top + row_height * (k + 0.5)
            x = round(position(float(point["figure"])), 1)
            body.append(text(20, at + 4.5, point["program"], "bold"))
            body.append(text(inputs_left, at + 4.5, point["inputs"], "soft"))
            if point["own"]:
                body.append(f'<circle class="series0" cx="{x:g}" cy="{at:g}" r="5"/>')
            else:
                body.append(f'<path class="series1" d="M{x:g} {at - 6:g}l6 6l-6 6l-6 -6z"/>')
            body.append(text(x + 11, at + 4.5, point["figure"]))
        y = bottom + 42
    return document(y + 14, chart["title"], body)


def figure_range(figure):
    """Returns the smallest and the largest number of a figure such as "39 to 54" or "11.3"."""
    numbers = [float(part) for part in figure.split(" to ")]
    return numbers[0], numbers[-1]


def speed(chart):
    """Ranges of speed by number of threads, on logarithmic axes: equal slopes are equal parallel efficiencies."""
    body, y = heading(chart)
    left, right = 74, 560
    top = y + 34
    bottom = top + 330
    low, high = chart["powers_of_ten"]

    def horizontal(threads):
        first, last = math.log(chart["threads"][0]), math.log(chart["threads"][-1])
        return round(left + 24 + (math.log(threads) - first) / (last - first) * (right - left - 48), 1)

    def vertical(value):
        return round(bottom - (math.log10(value) - low) / (high - low) * (bottom - top), 1)

    body.append(text(20, top - 16, chart["vertical"], "soft"))
    for power in range(low, high + 1):
        at = vertical(10 ** power)
        body.append(line(left, at, right, at, "axis" if power == low else "grid"))
        body.append(text(left - 8, at + 4.5, f"{10 ** power:,}" if power >= 0 else f"{10 ** power:g}", "soft end"))
    for threads in chart["threads"]:
        at = horizontal(threads)
        body.append(line(at, bottom, at, bottom + 5, "axis"))
        body.append(text(at, bottom + 20, str(threads), "soft middle"))
    body.append(text((left + right) / 2, bottom + 40, chart["horizontal"], "soft middle"))
    for number, series in enumerate(chart["series"]):
        classes = f"series{number}"
        points = [(p["threads"], *figure_range(p["figure"]), p["figure"]) for p in series["points"]]
        if [p[0] for p in points] == chart["threads"]:
            outline = [f"{horizontal(t):g} {vertical(b):g}" for t, _, b, _ in points]
            outline += [f"{horizontal(t):g} {vertical(a):g}" for t, a, _, _ in reversed(points)]
            body.append(f'<path class="band {classes}" d="M{"L".join(outline)}z"/>')
        for t, a, b, _ in points:
            # A range that is shorter than its line is wide is drawn as a dot.
            x, y1, y2 = horizontal(t), vertical(b), vertical(a)
            if y2 - y1 < 4:
                body.append(f'<circle class="{classes}" cx="{x:g}" cy="{(y1 + y2) / 2:g}" r="3"/>')
            else:
                body.append(line(x, y1, x, y2, f"range {classes}"))
        _, a, b, figure = points[0]
        body.append(text(horizontal(points[0][0]) + 4, vertical(a) + 19, figure))
        _, a, b, figure = points[-1]
        at = vertical(math.sqrt(a * b))
        body.append(text(right + 4, at - 2, series["name"], classes))
        body.append(text(right + 4, at + 15, figure))
    return document(bottom + 58, chart["title"], body)


TERMINAL_STYLE = """
  .page { fill: #0d1117; stroke: #3d444d; }
  text { font-family: %s; font-size: 12.6px; fill: #d1d7e0; white-space: pre; }
  .bold { font-weight: 700; fill: #ffffff; } .prompt { fill: #7ee787; }
""" % MONOSPACE


def terminal(captured):
    """Draws the output of a command, with the escape sequences for bold. A line that starts with "$ " is a prompt."""
    margin, line_height = 16, 18
    lines = captured.rstrip("\n").split("\n")
    plain = [re.sub("\x1b\\[[0-9;]*m", "", entry) for entry in lines]
    columns = max(map(len, plain))
    if columns > 100:
        sys.exit(f"terminal.txt: a line has {columns} columns; at most 100 are legible")
    advance = (WIDTH - 2 * margin) / 100
    body = []
    for k, (entry, shown) in enumerate(zip(lines, plain)):
        if not shown.strip():
            continue
        content = escape(entry, quote=False)
        content = content.replace("\x1b[1m", '<tspan class="bold">').replace("\x1b[0m", "</tspan>")
        if shown.startswith("$ "):
            content = f'<tspan class="prompt">$</tspan> <tspan class="bold">{content[2:]}</tspan>'
        # The length keeps columns in place whatever the font.
        body.append(
            f'<text xml:space="preserve" x="{margin}" y="{margin + 13 + k * line_height}" '
            f'textLength="{len(shown) * advance:.1f}">{content}</text>'
        )
    return document(2 * margin + len(lines) * line_height, "Output of " + plain[0][2:], body, TERMINAL_STYLE)


def points(value):
    """Yields all objects with a figure."""
    if isinstance(value, dict):
        if "figure" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from points(part)


def wrong_figures(results):
    """Returns a message for each figure that is not in the table row, section and note of its source."""
    wrong = []
    for point in points(results):
        source = results["sources"][point["source"]]
        note = (ROOT / source["note"]).read_text(encoding="utf-8")
        found = re.search(rf"^## {re.escape(source['section'])}\n(.*?)(?=^## |\Z)", note, re.M | re.S)
        rows = [row for row in (found[1] if found else "").split("\n") if row.startswith(point["row"])]
        if not any(re.search(rf"(?<![\d.]){re.escape(point['figure'])}(?![\d.]\d)", row) for row in rows):
            wrong.append(f"results.json: {point['figure']} is not in {source['note']}, {source['section']}, {point['row']}")
        if not all(source.get(key) for key in ("command", "machine", "date")):
            wrong.append(f"results.json: the source {point['source']} needs a command, a machine and a date")
    return wrong


def report(page):
    """Writes a screenshot of parts of a report: title, convergence and clusters. Other sections are hidden."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        sys.exit("Chromium is not installed")
    hidden = """<style>
      nav, section:not(#convergence):not(#clusters), #convergence .grid2 ~ *, #clusters > p, footer { display: none; }
      #convergence .grid2 > :nth-child(n+3), .grid3 > :nth-child(n+4) { display: none; }
      ::-webkit-scrollbar { display: none; }
    </style>"""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "report.html"
        copy.write_text(Path(page).read_text(encoding="utf-8").replace("</head>", hidden + "</head>"), encoding="utf-8")
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1160,1110"]
        picture = FOLDER / "report.png"
        subprocess.run([browser, *arguments, f"--screenshot={picture}", copy.as_uri()], check=True, stderr=subprocess.DEVNULL)


def main():
    if sys.argv[1:2] == ["--report"] and len(sys.argv) == 3:
        report(sys.argv[2])
        return
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    results = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
    pictures = {
        "accuracy.svg": accuracy(results["accuracy"]),
        "speed.svg": speed(results["speed"]),
        "terminal.svg": terminal((FOLDER / "terminal.txt").read_text(encoding="utf-8")),
    }
    faults = wrong_figures(results)
    for name, made in pictures.items():
        path = FOLDER / name
        if "--check" not in sys.argv:
            path.write_text(made, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_text(encoding="utf-8") != made:
            faults.append(f"{name} differs from what its data gives; docs/images/make.py writes it again")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
