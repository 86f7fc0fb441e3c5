"""A figure of `ropewalk report FOLDER --figures OUT` for dark pages: python3 docs/dark.py IN.svg > OUT.svg"""

import colorsys
import re
import sys
from pathlib import Path

# White, text, grid and axes. Other colours become lighter.
COLOURS = {"fff": "#0d1117", "222": "#e6edf3", "ddd": "#3d444d", "666": "#9198a1"}


def dark(svg):
    """The SVG in colours for a dark page."""
    svg = svg.replace('fill="#fff"', 'fill="none"')  # the page's own background
    return re.sub(r"(?<=[:\"])#([0-9a-f]{6}|[0-9a-f]{3})\b", lambda colour: COLOURS.get(colour[1]) or lighter(colour[1]), svg)


def lighter(digits):
    """A colour with at least the lightness that a dark page needs."""
    digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    hue, lightness, saturation = colorsys.rgb_to_hls(*(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)))
    rgb = colorsys.hls_to_rgb(hue, max(lightness, 0.58), min(saturation, 0.6))
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)


if __name__ == "__main__":
    sys.stdout.write(dark(Path(sys.argv[1]).read_text()))
