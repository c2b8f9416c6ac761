"""Panels of lines, drawn as SVG."""

from html import escape

COLUMN, ROW, GAP, HEAD = 32, 34, 10, 44
COLOURS = ["#3274d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#b39300", "#0f7f8f", "#6e6e6e"]


def nice(highest):
    """Steps of an axis that ends a little above: 1, 2 or 5 times a power of ten."""
    highest = highest or 1
    magnitude = 10.0 ** -6
    while True:
        for factor in (1, 2, 5):
            step = factor * magnitude
            if highest / step <= 4:
                return step
        magnitude *= 10


def shown(value, unit, step):
    if unit == "percentunit":
        return f"{value * 100:.0f} %" if step >= 0.01 else f"{value * 100:.1f} %"
    if unit == "s" and step < 0.5:
        return f"{value * 1000:.0f} ms" if step >= 0.001 else f"{value * 1000:.1f} ms"
    suffix = {"s": " s", "ops": " /s"}.get(unit, "")
    return f"{value:g}{suffix}"


def text(x, y, words, size=11, colour="#555", anchor="start", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
        f'text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'
    )


def panel(title, unit, lines, seconds, x, y, width, height):
    left, right, top, bottom = x + 52, x + width - 12, y + 30, y + height - 44
    out = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="#fff" stroke="#ddd"/>',
        text(x + 12, y + 18, title, 13, "#222", weight="bold"),
    ]
    highest = max((value for _, points in lines for _, value in points), default=0)
    step = nice(highest)
    ceiling = step * max(1, -(-highest // step))
    across = lambda at: left + (right - left) * at / seconds
    up = lambda value: bottom - (bottom - top) * value / ceiling
    for count in range(round(ceiling / step) + 1):
        value = count * step
        out.append(f'<path d="M{left} {up(value):.1f}H{right}" stroke="#eee"/>')
        out.append(text(left - 6, up(value) + 4, shown(value, unit, step), 10, anchor="end"))
    for at in range(0, int(seconds) + 1, 30):
        out.append(text(across(at), bottom + 14, f"{at // 60}:{at % 60:02}", 10, anchor="middle"))
    place = x + 12
    for (name, points), colour in zip(lines, COLOURS * 4):
        if points:
            # Where nothing was to be counted there is a gap, as in Grafana.
            path, before = "", None
            for at, value in points:
                path += f"{'L' if before and at - before < 1.5 else 'M'}{across(at):.1f} {up(value):.1f}"
                before = at
            out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out.append(f'<rect x="{place}" y="{y + height - 18}" width="12" height="4" fill="{colour}"/>')
        out.append(text(place + 17, y + height - 12, name, 11))
        place += 34 + 6.4 * len(name)
    return out


def dashboard(title, panels, seconds):
    width = 24 * COLUMN + 2 * GAP
    height = HEAD + max((p["gridPos"]["y"] + p["gridPos"]["h"]) for p, _ in panels) * ROW + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        'font-family="Inter, Helvetica, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#f4f5f5"/>',
        text(GAP + 4, 28, title, 18, "#222", weight="bold"),
        text(
            width - GAP,
            28,
            f"the panels' own queries over {seconds:.0f} s of the example shop, drawn by render.py",
            11,
            anchor="end",
        ),
    ]
    for each, lines in panels:
        at = each["gridPos"]
        out += panel(
            each["title"],
            each["fieldConfig"]["defaults"]["unit"],
            lines,
            seconds,
            GAP + at["x"] * COLUMN,
            HEAD + at["y"] * ROW,
            at["w"] * COLUMN - GAP / 2,
            at["h"] * ROW - GAP,
        )
    return "\n".join([*out, "</svg>", ""])
