// The table of results: a row per profile where that fits, otherwise a column per profile, and several such
// tables where not all columns fit.

const LATENCIES = [["p50", "p50_ms"], ["p90", "p90_ms"], ["p99", "p99_ms"], ["p99.9", "p99.9_ms"],
  ["max", "max_ms"], ["mean", "mean_ms"]];

/**
 * Groups of measures: name, and how to read and write each; `isCompared` shows the change. What is
 * rare has no column if it never happened.
 */
function measures(runs) {
  const count = (name, read) => ({ name, read, write: (value) => figure(value) });
  const rare = (name, read) => runs.some((run) => read(run) > 0) ? [count(name, read)] : [];
  const groups = [
    { name: "Messages", measures: [
      count("sent", (run) => run.messages), ...rare("undelivered", (run) => run.undelivered)] },
    { name: "Delivery latency, ms", measures: LATENCIES.map(([name, key]) => ({
      name, read: (run) => run.latency?.[key], write: (ms) => figure(ms, 1), isCompared: true })) },
    { name: "Retransmitted data units", measures: [
      ...Object.entries(CAUSES).filter(([, look]) => look.column).flatMap(([cause, { column, isRare }]) =>
        (isRare ? rare : (...one) => [count(...one)])(column, (run) => run.retransmissions[cause] ?? 0)),
      count("spurious", (run) => Object.values(run.spurious).reduce((sum, count) => sum + count, 0))] },
    { name: "On the wire, both directions", measures: [
      { ...count("packets", (run) => run.packets), isCompared: true },
      { name: "bytes per byte of payload", read: (run) => run.wire_bytes_per_payload_byte,
        write: (value) => figure(value, 2), isCompared: true }] },
  ];
  return groups;
}

function change(value, baseline) {
  const percentage = (value / baseline - 1) * 100;
  const size = Math.abs(percentage);
  if (!Number.isFinite(percentage)) return null;
  if (size < 0.05) return "same";
  return (percentage < 0 ? "\u2212" : "+") + figure(size, size < 10 ? 1 : 0) + THIN_SPACE + "%";
}

function cell(measure, run, baseline) {
  const value = measure.read(run);
  const made = element("td", {}, value == null ? "\u2013" : measure.write(value));
  const reference = measure.read(baseline);
  if (measure.isCompared && run !== baseline && value != null && reference != null) {
    const text = change(value, reference);
    if (text) made.append(element("small", {}, text));
  }
  return made;
}

const profileHeading = (run, index, scope) =>
  element("th", { class: "name", scope, "data-profile": run.profile }, swatch(index), run.profile);

function wideTable(runs, groups) {
  const first = element("tr", {}, element("td"));
  const second = element("tr", {}, element("th", { class: "name", scope: "col" }, "profile"));
  for (const group of groups) {
    first.append(element("th", { class: "group first", colspan: group.measures.length, scope: "colgroup" }, group.name));
    group.measures.forEach((measure, at) =>
      second.append(element("th", { scope: "col", class: at ? "" : "first" }, measure.name)));
  }
  const rows = runs.map(({ run, index }) => {
    const row = element("tr", { "data-profile": run.profile }, profileHeading(run, index, "row"));
    for (const group of groups) {
      group.measures.forEach((measure, at) => {
        const made = cell(measure, run, REPORT.runs[0]);
        if (at === 0) made.className = "first";
        row.append(made);
      });
    }
    return row;
  });
  return element("table", { class: "results" }, element("thead", {}, first, second), element("tbody", {}, ...rows));
}

function tallTable(runs, groups) {
  const head = element("tr", {}, element("td"), ...runs.map(({ run, index }) => profileHeading(run, index, "col")));
  const rows = groups.flatMap((group) => [
    element("tr", { class: "group" }, element("th", { colspan: runs.length + 1, scope: "rowgroup" }, group.name)),
    ...group.measures.map((measure) => element("tr", {},
      element("th", { class: "measure", scope: "row" }, measure.name),
      ...runs.map(({ run }) => cell(measure, run, REPORT.runs[0])))),
  ]);
  return element("table", { class: "results tall" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

/** Tall tables of at most `size` profiles each, one below the other. */
function tallTables(runs, groups, size) {
  const parts = Math.ceil(runs.length / size);
  const cut = (part) => Math.round(part * runs.length / parts);
  return Array.from({ length: parts }, (_, part) => tallTable(runs.slice(cut(part), cut(part + 1)), groups));
}

function drawTable() {
  const shown = REPORT.runs.map((run, index) => ({ run, index })).filter(({ index }) => isShown(index));
  const groups = measures(REPORT.runs);
  const container = document.getElementById("table");
  const isCut = () => container.scrollWidth > container.clientWidth;
  container.replaceChildren(wideTable(shown, groups));
  for (let size = shown.length; size > 0 && isCut(); size -= 1) {
    container.replaceChildren(...tallTables(shown, groups, size));
  }
}
