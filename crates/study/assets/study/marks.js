// Painted in addition to the lines of uPlot: bands, bars, whiskers and marks.

/** The outlines of marks around the origin, in the order of the looks. */
const MARKS = [
  "M-4 0 A4 4 0 1 0 4 0 A4 4 0 1 0 -4 0 Z", "M0 -5 L5 4 L-5 4 Z", "M-3.7 -3.7 L3.7 -3.7 L3.7 3.7 L-3.7 3.7 Z",
  "M0 -5.5 L5.5 0 L0 5.5 L-5.5 0 Z", "M0 5 L5 -4 L-5 -4 Z",
  "M-1.6 -5 L1.6 -5 L1.6 -1.6 L5 -1.6 L5 1.6 L1.6 1.6 L1.6 5 L-1.6 5 L-1.6 1.6 L-5 1.6 L-5 -1.6 L-1.6 -1.6 Z",
];
const markOf = (look) => MARKS[look % MARKS.length];

/** The sign of a group in a legend: as it is drawn. */
function sign(kind, look) {
  const paint = `var(--p${look % COLOURS})`;
  const glyph = (...children) => svg("svg", { class: "swatch", width: 26, height: 14, viewBox: "-13 -7 26 14", "aria-hidden": "true" }, ...children);
  if (kind === "bars" || kind === "stacked-bars") {
    const stripes = isStriped(look) ? [svg("path", { d: "M-6 5 L4 -5 M0 5 L6 -1", style: "stroke: var(--paper); stroke-width: 2" })] : [];
    return glyph(svg("rect", { x: -7, y: -6, width: 14, height: 12, style: `fill: ${paint}` }), ...stripes);
  }
  const line = svg("line", { x1: -13, x2: 13, y1: 0, y2: 0, "stroke-width": 2.5, "stroke-dasharray": profileDash(look).join(" "), style: `stroke: ${paint}` });
  const mark = svg("path", { d: markOf(look), style: `fill: ${paint}` });
  return kind === "scatter" ? glyph(mark) : kind === "lines" ? glyph(line, mark) : glyph(line);
}

/** Colours come round after COLOURS looks; stripes tell the bars of the second round. */
const isStriped = (look) => Math.floor(look / COLOURS) % 2 === 1;

/** Paints within the plot, in canvas pixels. */
function clipped(u, paint) {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  paint(u.ctx, { ratio: uPlot.pxRatio, x: (value) => u.valToPos(value, "x", true), y: (value) => heightOf(u, value) });
  u.ctx.restore();
}

/** The height of a value; on a logarithmic axis zero lies below everything. */
const heightOf = (u, value) => u.scales.y.distr === 3 && value <= 0 ? u.bbox.top + u.bbox.height * 2 : u.valToPos(value, "y", true);

function paintBands(u, groups) {
  clipped(u, (ctx, at) => {
    for (const { look, points } of groups.filter(({ isOn }) => isOn)) {
      const known = points.filter(({ interval }) => interval);
      ctx.beginPath();
      known.forEach(({ x, interval }) => ctx.lineTo(at.x(x), at.y(interval[1])));
      known.reverse().forEach(({ x, interval }) => ctx.lineTo(at.x(x), at.y(interval[0])));
      ctx.globalAlpha = 0.2;
      ctx.fillStyle = profileColour(look);
      ctx.fill();
    }
  });
}

/** A whisker from the lower to the upper end of `interval`, with caps; it has an edge, as it may lie on anything. */
function paintWhisker(ctx, at, x, interval, { stroke, cap }) {
  const [low, high] = interval.map(at.y);
  ctx.beginPath();
  ctx.moveTo(x, low);
  ctx.lineTo(x, high);
  for (const end of [low, high]) {
    ctx.moveTo(x - cap, end);
    ctx.lineTo(x + cap, end);
  }
  for (const [paint, width] of [[colour("paper"), 3.5], [stroke, 1.5]]) {
    ctx.strokeStyle = paint;
    ctx.lineWidth = width * at.ratio;
    ctx.stroke();
  }
}

/** Marks at the points of each group, whiskers where no band shows the interval. */
function paintMarks(u, groups, { isScatter }) {
  clipped(u, (ctx, at) => {
    for (const { look, points } of groups.filter(({ isOn }) => isOn)) {
      const [path, fill] = [new Path2D(markOf(look)), profileColour(look)];
      const isDense = points.length > 400;
      for (const { x, y, interval } of points) {
        if (interval && (isScatter || points.length === 1)) paintWhisker(ctx, at, at.x(x), interval, { stroke: fill, cap: 4 * at.ratio });
        ctx.save();
        ctx.translate(at.x(x), at.y(y));
        ctx.scale(at.ratio * (isDense ? 0.7 : 1), at.ratio * (isDense ? 0.7 : 1));
        ctx.globalAlpha = isScatter ? 0.65 : 1;
        ctx.fillStyle = fill;
        ctx.fill(path);
        ctx.restore();
      }
    }
  });
}

/** A mark where each tail ends: at its last message. */
function paintEnds(u, groups) {
  paintMarks(u, groups.map((group) => ({ ...group, points: group.points.slice(-1).map((point) => ({ ...point, interval: null })) })), { isScatter: false });
}

/** Where the bars of a figure stand: left edge and width of bar `nth` of `count` in slot `x`, in canvas pixels. */
function barPlace(at, x, nth, count) {
  const slot = at.x(1) - at.x(0);
  const width = Math.min(slot * 0.82 / count, 64 * at.ratio);
  return { left: at.x(x) - width * count / 2 + nth * width, width };
}

function paintBar(ctx, at, { left, width, top, bottom, look }) {
  const gap = width > 6 * at.ratio ? at.ratio : 0;
  ctx.fillStyle = profileColour(look);
  ctx.fillRect(left + gap / 2, top, width - gap, bottom - top);
  if (!isStriped(look)) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left + gap / 2, top, width - gap, bottom - top);
  ctx.clip();
  ctx.beginPath();
  for (let from = top - width; from < bottom; from += 7 * at.ratio) {
    ctx.moveTo(left, from + width);
    ctx.lineTo(left + width, from);
  }
  ctx.strokeStyle = colour("paper");
  ctx.lineWidth = 2 * at.ratio;
  ctx.stroke();
  ctx.restore();
}

function paintBars(u, groups, text) {
  const on = groups.filter(({ isOn }) => isOn);
  clipped(u, (ctx, at) => {
    const bottom = u.scales.y.distr === 3 ? u.bbox.top + u.bbox.height : at.y(0);
    on.forEach(({ look, points }, nth) => points.forEach(({ x, y, interval }) => {
      const { left, width } = barPlace(at, x, nth, on.length);
      paintBar(ctx, at, { left, width, top: at.y(y), bottom, look });
      if (interval) paintWhisker(ctx, at, left + width / 2, interval, { stroke: colour("ink"), cap: within(width / 4, 2 * at.ratio, 5 * at.ratio) });
    }));
    paintBarTexts(ctx, at, on, text);
  });
}

/** The values above their bars, if there is room for all of them. */
function paintBarTexts(ctx, at, on, text) {
  ctx.font = font(11 * at.ratio);
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.fillStyle = colour("soft");
  const texts = on.flatMap(({ points }, nth) => points.map(({ x, y, interval }) => ({
    place: barPlace(at, x, nth, on.length), top: at.y(Math.max(y, interval?.[1] ?? y)), text: text(y) })));
  if (texts.some(({ place, text }) => ctx.measureText(text).width > place.width - 2 * at.ratio)) return;
  for (const { place, top, text } of texts) ctx.fillText(text, place.left + place.width / 2, top - 3 * at.ratio);
}

function paintStacks(u, groups) {
  clipped(u, (ctx, at) => {
    stacked(groups).forEach((points, group) => {
      if (!groups[group].isOn) return;
      for (const { x, from, to } of points) {
        paintBar(ctx, at, { ...barPlace(at, x, 0, 1), top: at.y(to), bottom: at.y(from) - (from > 0 ? at.ratio : 0), look: groups[group].look });
      }
    });
  });
}

/** The outline of a value that the source states: hollow, so that what lies under it stays visible. */
const STATED = "M0 -7 L7 0 L0 7 L-7 0 Z";

const statedSign = () => svg("svg", { class: "swatch", width: 26, height: 18, viewBox: "-13 -9 26 18", "aria-hidden": "true" },
  svg("path", { d: STATED, style: "fill: none; stroke: var(--ink); stroke-width: 2" }));

/** A value that is stated for the whole width: a level line. */
function paintLevel(u, ctx, at, y, paint) {
  ctx.save();
  ctx.setLineDash([7 * at.ratio, 5 * at.ratio]);
  ctx.strokeStyle = paint;
  ctx.lineWidth = 2 * at.ratio;
  ctx.beginPath();
  ctx.moveTo(u.bbox.left, at.y(y));
  ctx.lineTo(u.bbox.left + u.bbox.width, at.y(y));
  ctx.stroke();
  ctx.restore();
}

/** The values that the source states, in the colour of their group, above its bar or on its line. */
function paintStated(u, figure, { groups, stated }) {
  const on = groups.filter(({ isOn }) => isOn);
  clipped(u, (ctx, at) => {
    for (const { x, y, group } of stated) {
      if (group && !group.isOn) continue;
      const ink = group && figure.kind !== "bars" ? profileColour(group.look) : colour("ink");
      if (x == null) {
        paintLevel(u, ctx, at, y, ink);
        continue;
      }
      const place = group && figure.kind === "bars" ? barPlace(at, x, on.indexOf(group), on.length) : null;
      ctx.save();
      ctx.translate(place ? place.left + place.width / 2 : at.x(x), at.y(y));
      ctx.scale(at.ratio, at.ratio);
      for (const [paint, width] of [[colour("paper"), 5], [ink, 2]]) {
        ctx.strokeStyle = paint;
        ctx.lineWidth = width;
        ctx.stroke(new Path2D(STATED));
      }
      ctx.restore();
    }
  });
}
