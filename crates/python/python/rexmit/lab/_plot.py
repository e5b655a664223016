"""Figures of studies as charts of altair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._frames import optional

if TYPE_CHECKING:
    import altair

_UNITS = {
    "milliseconds": "ms",
    "seconds": "s",
    "bytes": "bytes",
    "bits_per_second": "bit/s",
    "count": "",
    "share": "",
    "ratio": "",
}


def _title(axis: dict[str, Any]) -> str:
    unit = _UNITS.get(axis["unit"], "")
    return f"{axis['label']} ({unit})" if unit and not axis["categories"] else str(axis["label"])


def _rows(figure: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per point; what a logarithmic scale cannot show is left out."""
    categories = figure["x"]["categories"]
    for group in figure["groups"]:
        for point in group["points"]:
            if any(figure[axis]["log"] and point[axis] <= 0 for axis in "xy"):
                continue
            x = categories[int(point["x"])] if categories else point["x"]
            row = {"x": x, "y": point["y"], "group": group["label"]}
            low, high = point["interval"] or (None, None)
            if low is not None and not (figure["y"]["log"] and low <= 0):
                row.update(low=low, high=high)
            yield row


def _chart(alt: Any, figure: dict[str, Any], number: int) -> Any:
    kind = figure["kind"]
    rows = list(_rows(figure))
    x, y = figure["x"], figure["y"]

    def scale(axis: dict[str, Any]) -> Any:
        settings: dict[str, Any] = {"type": "log" if axis["log"] else "linear", "zero": False}
        if axis["log"]:
            del settings["zero"]
        if axis["range"]:
            settings.update(domain=list(axis["range"]), clamp=True)
        return alt.Scale(**settings)

    is_bars = kind in ("bars", "stacked-bars")
    if x["categories"]:
        across = alt.X("x:N", title=_title(x), sort=x["categories"])
    else:
        across = alt.X("x:Q", title=_title(x), scale=scale(x))
    up = alt.Y("y:Q", title=_title(y), scale=alt.Undefined if is_bars and not y["log"] else scale(y))
    groups = [group["label"] for group in figure["groups"]]
    colour = alt.Color("group:N", title=None, sort=groups)
    base = alt.Chart(alt.Data(values=rows)).encode(color=colour)
    tips = [alt.Tooltip("group:N"), alt.Tooltip("x", type="nominal" if x["categories"] else "quantitative"), "y:Q"]
    if kind == "lines":
        chart = base.mark_line(point=True)
    elif kind == "scatter":
        chart = base.mark_point()
    elif is_bars:
        chart = base.mark_bar()
    else:
        chart = base.mark_line(interpolate="step-after")
    chart = chart.encode(x=across, y=up, tooltip=tips)
    if kind == "bars":
        offset = alt.XOffset("group:N", sort=groups)
        # Logarithmic bars have no zero to stand on.
        chart = base.mark_point(filled=True).encode(x=across, y=up, tooltip=tips) if y["log"] else chart
        chart = chart.encode(xOffset=offset)
        if any("low" in row for row in rows):
            whiskers = base.mark_rule().encode(x=across, xOffset=offset, y="low:Q", y2="high:Q", color=alt.value("grey"))
            chart = chart + whiskers
    elif kind == "lines" and any("low" in row for row in rows):
        band = base.mark_area(opacity=0.2).encode(x=across, y=alt.Y("low:Q", title=_title(y)), y2="high:Q")
        chart = band + chart
    if not is_bars and not x["categories"]:
        # Dragging and the wheel move both scales. Selections of the same name would move all figures of a page at once.
        chart = chart.interactive(name=f"zoom_{number}")
    title = alt.TitleParams(figure["title"], subtitle=figure["about"].splitlines()) if figure["about"] else figure["title"]
    return chart.properties(title=title, width=500, height=300)


def plot(figures: list[dict[str, Any]]) -> altair.TopLevelMixin:
    """The figures of a page, one below the other."""
    alt = optional("altair")
    charts = [_chart(alt, figure, number) for number, figure in enumerate(figures)]
    chart: altair.TopLevelMixin = charts[0] if len(charts) == 1 else alt.vconcat(*charts).resolve_scale(color="independent")
    return chart
