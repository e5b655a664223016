// The complementary distribution of latency, one curve per profile.

const ccdf = { chart: null, observer: null, isLog: true, hidden: new Set() };

/** The step functions of all runs over the union of their latencies; exact at every point. */
function ccdfData(runs) {
  const least = 0.001; // a microsecond: what a logarithmic axis makes of zero
  const grid = [...new Set(runs.flatMap((run) => run.ccdf?.latency_ms ?? []))].sort((a, b) => a - b);
  const curves = runs.map(({ ccdf: curve }) => {
    let next = 0;
    return grid.map((latency) => {
      while (curve && next < curve.latency_ms.length && curve.latency_ms[next] < latency) next += 1;
      return curve && next < curve.share.length ? curve.share[next] : null;
    });
  });
  return [grid.map((latency) => Math.max(latency, least)), ...curves];
}

function ccdfAxes() {
  const decades = (u) => logSplits(u.scales.y.min, u.scales.y.max, [1]);
  const x = { ...axisLook(), label: "delivery latency, ms" + (ccdf.isLog ? " (log scale)" : ""), labelSize: 22, size: 30,
    values: (u, splits) => splits.map((split) => figure(split, split > 0 && split < 1 ? 2 : 0)) };
  if (ccdf.isLog) {
    x.splits = (u) => {
      const { min, max } = u.scales.x;
      const fine = logSplits(min, max, [1, 2, 5]);
      return fine.length > 2 ? fine : logSplits(min, max, [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]);
    };
    x.filter = (u, splits) => splits;
  }
  const y = { ...axisLook(), splits: decades, filter: (u, splits) => splits, size: 58,
    values: (u, splits) => splits.map(percent) };
  const quantiles = { ...axisLook(), side: 1, scale: "y", splits: decades, filter: (u, splits) => splits, size: isNarrow() ? 46 : 52,
    grid: { show: false }, ticks: { show: false },
    values: (u, splits) => splits.map((split) => split > 0.5 ? "" : "p" + +((1 - split) * 100).toFixed(8)) };
  return [x, y, quantiles];
}

function ccdfSeries() {
  const value = (u, share, series, at) => at == null ? "\u2013" : share == null ? "none" : percent(share);
  return [
    { label: "waited", value: (u, ms) => ms == null ? "\u2013" : "\u2265 " + millis(ms) + " ms" },
    ...REPORT.runs.map((run, index) => ({
      label: run.profile, value, scale: "y", width: 2, stroke: profileColour(index), dash: profileDash(index),
      show: isShown(index) && !ccdf.hidden.has(index), points: { show: false },
      // Between two points the curve has the value of the later one.
      paths: uPlot.paths.stepped({ align: -1 }),
    })),
  ];
}

const ccdfHeight = () => isNarrow() ? 320 : 420;

function drawCcdf() {
  const container = document.getElementById("ccdf");
  ccdf.observer?.disconnect();
  ccdf.chart?.destroy();
  const data = ccdfData(REPORT.runs);
  const lowest = Math.min(...REPORT.runs.map((run) => run.ccdf?.share.at(-1) ?? 1));
  if (data[0].length === 0) {
    container.replaceChildren(element("p", {}, "No message was delivered."));
    return;
  }
  container.replaceChildren(element("p", { class: "axis-title" }, "share of messages that waited at least so long"));
  const [first, last] = [data[0][0], data[0].at(-1)];
  const whole = first === last ? [first * 0.9, last * 1.1] : ccdf.isLog ? [first, last * 1.03] : [0, last * 1.02];
  const isZoomed = (min, max) => min > first || max < last;
  ccdf.chart = new uPlot({
    width: container.clientWidth || 600, height: ccdfHeight(), padding: [8, 4, 0, 0],
    scales: {
      x: { time: false, distr: ccdf.isLog ? 3 : 1, range: (u, min, max) => isZoomed(min, max) ? [min, max] : whole },
      y: { distr: 3, range: () => [lowest * 0.8, 1.05] },
    },
    axes: ccdfAxes(), series: ccdfSeries(),
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false, setScale: true } },
    legend: { live: true, markers: { width: 0, fill: (u, at) => profileColour(at - 1) } },
    hooks: { setSeries: [(u, at, change) => {
      // A click in the legend hides a curve; the filter above hides the profile everywhere.
      if (at == null || change.show == null || !isShown(at - 1)) return;
      if (change.show) ccdf.hidden.delete(at - 1); else ccdf.hidden.add(at - 1);
    }] },
  }, data, container);
  ccdf.observer = followWidth(container, ccdf.chart, ccdfHeight);
  showCcdfProfiles();
}

/** Applies the filter: a profile that is not shown has neither curve nor entry in the legend. */
function showCcdfProfiles() {
  if (!ccdf.chart) return;
  const entries = ccdf.chart.root.querySelectorAll(".u-legend .u-series");
  REPORT.runs.forEach((run, index) => {
    const show = isShown(index) && !ccdf.hidden.has(index);
    if (ccdf.chart.series[index + 1].show !== show) ccdf.chart.setSeries(index + 1, { show });
    entries[index + 1].hidden = !isShown(index);
  });
}

function buildCcdfBar() {
  const scales = [["log", true], ["linear", false]].map(([name, isLog]) => {
    const made = button(name, `latency on a ${name === "log" ? "logarithmic" : "linear"} axis`, () => {
      ccdf.isLog = isLog;
      scales.forEach((other) => other.setAttribute("aria-pressed", String(other === made)));
      drawCcdf();
    });
    made.setAttribute("aria-pressed", String(isLog === ccdf.isLog));
    return made;
  });
  const whole = button("whole", "show the whole distribution", drawCcdf);
  document.getElementById("ccdf-bar").append(element("span", { class: "what" }, "latency axis"), ...scales, element("span", { class: "space" }), whole);
}
