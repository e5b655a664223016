// A figure as a chart: uPlot keeps scales, axes, lines and zoom.

// Tilted names of many categories need room of their own.
const chartHeight = ({ categories }) => (isNarrow() ? 320 : 420) + (categories.length > 4 ? 70 : 0);
const STEPS = { cdf: 1, ccdf: -1, series: 1 };
const isBars = ({ kind }) => kind === "bars" || kind === "stacked-bars";
const isPainted = (figure) => isBars(figure) || figure.kind === "scatter";

/** The line of a group: a distribution goes on to both sides of what was measured. */
function lineOf({ kind }, points, [from, to]) {
  const line = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [first, last] = [points[0], points.at(-1)];
  if (STEPS[kind] && kind !== "series" && from < first.x) {
    line[0].unshift(from);
    line[1].unshift(kind === "cdf" ? 0 : first.y);
  }
  if (kind === "cdf" && last.x < to) {
    line[0].push(to);
    line[1].push(last.y);
  }
  return line;
}

/** The lines over the union of their values, or as much as uPlot needs to open its scales. */
function chartData(figure, { groups }, [allX]) {
  if (isPainted(figure)) return [allX, [null, null]];
  return uPlot.join(groups.map(({ points }) => lineOf(figure, points, allX)));
}

function chartSeries(figure, { groups }) {
  if (isPainted(figure)) return [{}, { paths: () => null, points: { show: false } }];
  const step = STEPS[figure.kind];
  return [{}, ...groups.map(({ label, look, isOn }) => ({
    label, show: isOn, width: 2, stroke: profileColour(look), dash: profileDash(look), points: { show: false },
    paths: step ? uPlot.paths.stepped({ align: step }) : uPlot.paths.linear(),
  }))];
}

/** What is painted under the lines and over them. */
function chartPaint(figure, { groups }, unit) {
  const isMarked = groups.every(({ points }) => points.length <= 60);
  switch (figure.kind) {
    case "bars": return [null, (u) => paintBars(u, groups, (value) => barText(value, unit))];
    case "stacked-bars": return [null, (u) => paintStacks(u, groups)];
    case "scatter": return [null, (u) => paintMarks(u, groups, { isScatter: true })];
    case "ccdf": return [null, (u) => paintEnds(u, groups)];
    case "lines": return [(u) => paintBands(u, groups), (u) => { if (isMarked) paintMarks(u, groups, { isScatter: false }); }];
    default: return [(u) => paintBands(u, groups), null];
  }
}

/** A value above its bar: three digits, in the unit of the axis. */
const barText = (value, [size]) => plain(value / size, within(3 - digitsBefore(value / size), 0, 4));

function chartAxes(figure, { categories }, { isLogX, isLogY }, [unitX, unitY]) {
  const across = categories.length ? categoryAxis(figure, categories)
    : valueAxis({ axis: figure.x, isLog: isLogX, unit: unitX, isAcross: true });
  const upwards = valueAxis({ axis: figure.y, isLog: isLogY, unit: unitY, isAcross: false });
  return figure.kind === "ccdf" && isLogY ? [across, upwards, quantileAxis()] : [across, upwards];
}

const scaleOver = (whole, isLog) => ({
  time: false, auto: false, distr: isLog ? 3 : 1, min: whole[0], max: whole[1],
  range: (u, min, max) => min == null || isLog && !(min > 0) ? whole : [min, max],
});

/** Draws `figure`; `onCursor` is told of every move over it. */
function drawChart(figure, part, view, container, onCursor) {
  const all = reaches(figure, part, view);
  const whole = openingReaches(figure, part, view, all);
  const units = [multiple(figure.x.unit, whole[0][1]), multiple(figure.y.unit, whole[1][1])];
  const [under, over] = chartPaint(figure, part, units[1]);
  const paints = [over, part.stated.length ? (u) => paintStated(u, figure, part) : null].filter(Boolean);
  const show = (u, [x, y]) => u.batch(() => {
    u.setScale("x", { min: x[0], max: x[1] });
    u.setScale("y", { min: y[0], max: y[1] });
  });
  const chart = new uPlot({
    width: container.clientWidth || 600, height: chartHeight(part), padding: [8, figure.kind === "ccdf" && view.isLogY ? 0 : 16, 0, (u) => overhang(u, part.categories)],
    scales: { x: scaleOver(whole[0], view.isLogX), y: scaleOver(whole[1], view.isLogY) },
    axes: chartAxes(figure, part, view, units), series: chartSeries(figure, part), legend: { show: false },
    cursor: { y: figure.kind === "scatter", points: { show: false }, bind: { dblclick: (u) => () => { show(u, whole); return null; } },
      // Categories stay together; elsewhere a drag along one axis zooms along that one alone.
      drag: part.categories.length ? { x: false, y: true, setScale: true } : { x: true, y: true, uni: 40, setScale: true } },
    hooks: { drawAxes: under ? [under] : [], draw: paints, setCursor: [onCursor] },
  }, chartData(figure, part, all), container);
  return { chart, whole, all, units, showWhole: () => show(chart, whole), showAll: () => show(chart, all) };
}
