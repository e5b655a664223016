// Runs in the report after it has drawn: counts what is on the canvases, uses the filter and the
// switches as a reader would, and posts what it found to the document around it.
"use strict";
(async () => {
  const found = { errors: window.selftestErrors };
  const settle = () => new Promise((done) => setTimeout(done, 50));
  const only = (all) => [...document.querySelectorAll(all)];
  // Pixels of the canvas that are close to a colour of the style sheet.
  const painted = (canvas, name) => {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = colour(name);
    probe.fillRect(0, 0, 1, 1);
    const want = probe.getImageData(0, 0, 1, 1).data;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      const near = [0, 1, 2].every((part) => Math.abs(data[at + part] - want[part]) < 24);
      if (near && data[at + 3] > 200) count += 1;
    }
    return count;
  };
  const curves = () => REPORT.runs.map((run, at) => painted(only("#ccdf canvas")[0], "p" + at));
  const stallMarks = () => painted(only(".stall canvas")[0], "ink");
  const rows = () => only("#table tbody tr").map((row) => row.dataset.profile);
  const press = (label) => only(`[aria-label="${label}"]`)[0].click();
  try {
    await settle();
    found.rows = rows();
    found.curves = curves();
    const first = (run) => run.worst_stall.sends.filter(({ runs }) => runs.some((run) => run[2] === "new")).length;
    found.stalls = only(".stall canvas").map((canvas, at) => ({
      packets: first(REPORT.runs[at]),
      timeouts: painted(canvas, "timeout"), acks: painted(canvas, "ack"), sends: painted(canvas, "ink"),
    }));
    found.key = only("#key li").map((entry) => entry.textContent);
    const { at_ms } = REPORT.runs.at(-1).worst_stall.sends.find(({ runs }) => runs[0][2] === "redundant");
    found.copy = readings(REPORT.runs.at(-1).worst_stall).find((mark) => mark.ms === at_ms).text;
    press("latency on a linear axis");
    await settle();
    found.linearCurves = curves();
    found.zoom = [stallMarks()];
    press("zoom in");
    await settle();
    found.zoom.push(stallMarks());
    press("show the whole stall");
    await settle();
    found.zoom.push(stallMarks());
    only("#filter input")[0].click();
    await settle();
    found.filtered = {
      rows: rows(), curves: curves(),
      stalls: only("article").filter((article) => article.offsetHeight > 0).map((article) => article.dataset.profile),
      legend: only("#ccdf .u-legend .u-series").filter((entry) => entry.offsetHeight > 0).length - 1,
    };
    only("#filter input")[0].click();
    await settle();
    found.restored = { rows: rows(), curves: curves() };
    found.overflow = document.documentElement.scrollWidth - window.innerWidth;
  } catch (error) {
    found.errors.push(String(error));
  }
  parent.postMessage(JSON.stringify(found), "*");
})();
