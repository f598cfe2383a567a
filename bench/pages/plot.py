"""SVG pictures: bars with targets, and lines, readable on light and dark pages."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from msgspec import Struct

WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 300, 20, 44, 40
ROW = 34
HEIGHT = 320
MOST = 2.0  # the longest bar, in targets; better values are not drawn longer
COLOURS = ("s1", "s2", "s3", "s4")
STYLE = """<style>
.p{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-weight:600;font-size:15px}.q{fill:#59636e;font-size:12px}
.bg{fill:#ffffff;stroke:#d1d9e0}.g{stroke:#d1d9e0;stroke-width:1}.m{stroke:#1f2328;stroke-width:2}
.yes{fill:#2da44e}.no{fill:#d1242f}.un{fill:#8c959f}.l{fill:none;stroke-width:2.5}
.s1{stroke:#0969da;fill:#0969da}.s2{stroke:#bc4c00;fill:#bc4c00}.s3{stroke:#8250df;fill:#8250df}.s4{stroke:#1a7f37;fill:#1a7f37}
.l.s1,.l.s2,.l.s3,.l.s4{fill:none}
@media(prefers-color-scheme:dark){.p{fill:#e6edf3}.q{fill:#9198a1}.bg{fill:#0d1117;stroke:#3d444d}.g{stroke:#3d444d}
.m{stroke:#e6edf3}.yes{fill:#3fb950}.no{fill:#f85149}.un{fill:#6e7681}
.s1{stroke:#58a6ff;fill:#58a6ff}.s2{stroke:#f0883e;fill:#f0883e}.s3{stroke:#a371f7;fill:#a371f7}
.s4{stroke:#3fb950;fill:#3fb950}}
</style>"""


class Bar(Struct, frozen=True):
    """A value beside its bound. `good` is None when the run was too small."""

    label: str
    value: float
    bound: float
    shown: str
    good: bool | None


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Draw bars, each scaled by its own target, so that all share one target line."""
    room = WIDTH - LEFT - RIGHT - 150
    target = LEFT + room / MOST
    height = TOP + ROW * len(rows) + 16
    parts = [f'<text class="p t" x="16" y="26">{escape(title)}</text>']
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        length = max(2.0, room / MOST * min(MOST, row.value / row.bound if row.bound else 0.0))
        kind = {True: "yes", False: "no", None: "un"}[row.good]
        parts += [
            f'<text class="p" x="{LEFT - 10}" y="{y + 17}" text-anchor="end">{escape(row.label)}</text>',
            f'<rect class="{kind}" x="{LEFT}" y="{y + 4}" width="{length:.1f}" height="18" rx="3"/>',
            f'<text class="p q" x="{LEFT + max(length, room / MOST) + 8:.1f}" y="{y + 17}">{escape(row.shown)}</text>',
        ]
    parts.append(f'<line class="m" x1="{target}" x2="{target}" y1="{TOP - 4}" y2="{height - 12}"/>')
    return _svg(height, title, parts)


def stacks(title: str, unit: str, rows: Mapping[str, float]) -> str:
    """Draw plain bars, each with its value."""
    room = WIDTH - LEFT - RIGHT - 90
    most = max(rows.values(), default=0.0) or 1.0
    height = TOP + 26 * len(rows) + 16
    parts = [f'<text class="p t" x="16" y="26">{escape(title)}</text>']
    for i, (label, value) in enumerate(rows.items()):
        y, length = TOP + 26 * i, max(1.0, room * value / most)
        parts += [
            f'<text class="p" x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="s1" x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="15" rx="3"/>',
            f'<text class="p q" x="{LEFT + length + 8:.1f}" y="{y + 15}">{value:.3g} {escape(unit)}</text>',
        ]
    return _svg(height, title, parts)


class Axis(Struct, frozen=True):
    """One direction of a plot: its label, its range, and whether it is logarithmic."""

    label: str
    low: float
    high: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return the position of a value, from 0 to 1."""
        low, high, at = (log10(max(v, 1e-9)) if self.is_log else v for v in (self.low, self.high, value))
        return min(1.0, max(0.0, (at - low) / ((high - low) or 1.0)))

    def ticks(self) -> list[float]:
        if self.is_log:
            return [10.0**power for power in range(ceil(log10(self.low)), floor(log10(self.high)) + 1)]
        step = _round_step((self.high - self.low) / 5)
        return [step * k for k in range(ceil(self.low / step), floor(self.high / step + 1e-9) + 1)]


def lines(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, *, log_x: bool = False
) -> str:
    """Draw several lines in one plot, named in a legend."""
    points = [point for each in series.values() for point in each]
    xs = [at for at, _ in points if at > 0 or not log_x] or [1.0]
    low = 10.0 ** floor(log10(min(xs))) if log_x else min(xs)
    across = Axis(x, low, 10.0 ** ceil(log10(max(xs)) or 1) if log_x else max(xs), log_x)
    up = Axis(y, 0.0, max((at for _, at in points), default=1.0) * 1.05)
    parts = [f'<text class="p t" x="16" y="26">{escape(title)}</text>', *_grid(across, up)]
    for colour, each in zip(COLOURS * 3, series.values(), strict=False):
        at = " ".join(f"{_x(across, a):.1f},{_y(up, b):.1f}" for a, b in each)
        parts.append(f'<polyline class="l {colour}" points="{at}"/>')
        if len(each) < 10:
            parts += [
                f'<circle class="{colour}" cx="{_x(across, a):.1f}" cy="{_y(up, b):.1f}" r="3.5"/>' for a, b in each
            ]
    parts += _legend(list(series))
    return _svg(HEIGHT + 22 * len(series), title, parts)


SIDE = 70  # left edge of a plot with lines


def _x(axis: Axis, value: float) -> float:
    return SIDE + (WIDTH - SIDE - RIGHT) * axis.place(value)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * axis.place(value)


def _grid(across: Axis, up: Axis) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<text class="p q" x="{right}" y="{bottom + 32}" text-anchor="end">{escape(across.label)}</text>',
        f'<text class="p q" x="{right}" y="26" text-anchor="end">{escape(up.label)}</text>',
    ]
    for value in up.ticks():
        at = _y(up, value)
        parts += [
            f'<line class="g" x1="{SIDE}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>',
            f'<text class="p q" x="{SIDE - 8}" y="{at + 4:.1f}" text-anchor="end">{_shown(value)}</text>',
        ]
    for value in across.ticks():
        at = _x(across, value)
        parts += [
            f'<line class="g" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}"/>',
            f'<text class="p q" x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{_shown(value)}</text>',
        ]
    return parts


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for i, (colour, name) in enumerate(zip(COLOURS * 3, names, strict=False)):
        y = HEIGHT + 22 * i
        parts += [
            f'<rect class="{colour}" x="{SIDE}" y="{y}" width="14" height="10" rx="2"/>',
            f'<text class="p" x="{SIDE + 22}" y="{y + 10}">{escape(name)}</text>',
        ]
    return parts


def _round_step(rough: float) -> float:
    """Return 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(rough or 1.0))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough)


def _shown(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    size, label = f"0 0 {WIDTH} {height:.0f}", escape(title)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img" aria-label="{label}">'
    card = f'<rect class="bg" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>'
    return "\n".join([head, STYLE, card, *parts, "</svg>"]) + "\n"
