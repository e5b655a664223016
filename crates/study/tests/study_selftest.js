// Runs in the page of a study after it has drawn: counts what is on the canvases, uses filter, legend,
// switches and tables as a reader would, and posts what it found to the document around it.
"use strict";
(async () => {
  const found = { errors: window.selftestErrors };
  const settle = () => new Promise((done) => setTimeout(done, 60));
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const figures = all(".figure");
  const byKind = (kind) => figures[STUDY.figures.findIndex((figure) => figure.kind === kind)];
  const rgb = (name) => {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = colour(name);
    probe.fillRect(0, 0, 1, 1);
    return probe.getImageData(0, 0, 1, 1).data;
  };
  // Calls `visit` with each pixel of the chart that is close to a colour of the style sheet; bands are
  // fainter than that.
  const eachPixel = (figure, name, visit) => {
    const canvas = figure.querySelector("canvas");
    if (!canvas) return;
    const [red, green, blue] = rgb(name);
    const { data } = canvas.getContext("2d", { willReadFrequently: true }).getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] > 130 && Math.abs(data[at] - red) < 24 && Math.abs(data[at + 1] - green) < 24 &&
        Math.abs(data[at + 2] - blue) < 24) visit(at / 4 % canvas.width, Math.floor(at / 4 / canvas.width));
    }
  };
  const painted = (figure, name) => {
    let count = 0;
    eachPixel(figure, name, () => { count += 1; });
    return count;
  };
  const nameOf = (label) => "p" + looks.get(label) % COLOURS;
  const groupsPainted = (figure) => all(".entry", figure).map((entry) => painted(figure, nameOf(entry.dataset.label)));
  const labels = (figure) => all(".entry", figure).map((entry) => entry.dataset.label);
  // How often a colour begins along the row in which it begins most often: which is the number of bars.
  const columns = (figure, name) => {
    const begins = new Map();
    let [lastX, lastY] = [-2, -1];
    eachPixel(figure, name, (x, y) => {
      if (y !== lastY || x !== lastX + 1) begins.set(y, (begins.get(y) ?? 0) + 1);
      [lastX, lastY] = [x, y];
    });
    return Math.max(0, ...begins.values());
  };
  const state = () => ({
    labels: figures.map(labels), painted: figures.map(groupsPainted), rows: all("#cost-table tbody tr").length,
    bars: columns(byKind("stacked-bars"), nameOf("timeout")), first: figures.map((figure) => painted(figure, "p0")),
  });
  const press = (label, within) => all(`[aria-label="${label}"]`, within)[0].click();
  const box = (axis, label) => all("#filter input").find(({ dataset }) => dataset.axis === axis && dataset.label === label);
  const mouse = (over, type, x, y) => {
    const place = over.getBoundingClientRect();
    over.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: place.left + x * place.width, clientY: place.top + y * place.height, button: 0, movementX: 1, movementY: 1 }));
  };
  const overflow = () => document.documentElement.scrollWidth - window.innerWidth;
  try {
    await settle();
    found.stated = { legends: figures.map((figure) => all(".stated", figure).length), ink: painted(byKind("lines"), "ink"), level: painted(byKind("series"), "ink") };
    found.claims = all(".claim").map((claim) => all(".verdict", claim)[0].textContent);
    found.instances = all(".claim").map((claim) => all("tbody tr", claim).length);
    found.opening = state();
    found.whiskers = painted(byKind("bars"), "ink");
    found.overflow = overflow();

    box("system", SYSTEM).click();
    await settle();
    found.filtered = state();
    box("system", SYSTEM).click();
    await settle();
    found.restored = state();

    press("only rtt = 100 ms");
    await settle();
    found.narrowed = { rows: all("#cost-table tbody tr").length, lines: groupsPainted(byKind("lines")), bars: labels(byKind("bars")),
      unreached: figures.map((figure) => all(".note", figure).some((note) => !note.hidden && note.textContent.startsWith("Not divided by rtt"))) };
    press("all of rtt");
    all("#filter input").filter(({ dataset }) => dataset.axis === "system").forEach((one) => one.click());
    await settle();
    found.nothing = { charts: all(".figure canvas").length, rows: all("#cost-table tbody tr").length };
    press("all of system");
    await settle();
    found.again = state();

    found.toggled = [];
    for (const figure of figures) {
      const entry = figure.querySelector(".entry");
      const name = nameOf(entry.dataset.label);
      const before = painted(figure, name);
      entry.click();
      await settle();
      const without = painted(figure, name);
      entry.click();
      await settle();
      found.toggled.push([before, without, painted(figure, name)]);
    }

    const scatter = byKind("scatter");
    const over = scatter.querySelector(".u-over");
    found.zoom = [painted(scatter, "p1")];
    mouse(over, "mousemove", 0.4, 0.4);
    mouse(over, "mousedown", 0.4, 0.4);
    mouse(over, "mousemove", 0.6, 0.6);
    mouse(over, "mouseup", 0.6, 0.6);
    await settle();
    found.zoom.push(painted(scatter, "p1"));
    mouse(over, "dblclick", 0.5, 0.5);
    await settle();
    found.zoom.push(painted(scatter, "p1"));

    found.readings = [];
    for (const figure of figures) {
      mouse(figure.querySelector(".u-over"), "mousemove", 0.5, 0.5);
      await settle();
      found.readings.push([figure.querySelector(".reading").textContent, figure.querySelector(".entry .value").textContent]);
    }

    for (const figure of figures) all('[aria-label^="logarithmic scale"]', figure).forEach((one) => one.click());
    await settle();
    found.otherScales = figures.map(groupsPainted);

    press("sort by game.collapses");
    press("sort by game.collapses");
    found.sorted = all("#cost-table tbody tr").map((row) => row.lastChild.textContent);
    all("details").forEach((one) => { one.open = true; });
    await settle();
    found.quantities = all("#all tbody tr").length;
    all("#all input")[0].value = "rtx2";
    all("#all input")[0].dispatchEvent(new Event("input"));
    found.searched = all("#all tbody tr").length;
    found.csv = csv().split("\r\n");
    found.csv = { lines: found.csv.length - 2, head: found.csv[0], first: found.csv[1] };
    found.overflowOpen = overflow();
  } catch (error) {
    found.errors.push(String(error.stack));
  }
  parent.postMessage(JSON.stringify(found), "*");
})();
