// The time-sequence graph of a stall. uPlot keeps scales, axes and zoom; the marks are our own.

const seconds = (ms) => figure(ms / 1000, 3) + " s";
const numbers = ([low, high]) => low === high ? `+${low}` : `+${low}\u2026+${high}`;

/** What ends a message: without the receiver's trace, its acknowledgement. */
const ending = (stall) => stall.is_by_ack ? "acknowledged" : "delivered";

const meet = ([low, high]) => (run) => run[1] >= low && run[0] <= high;
const touches = (range, runs) => runs.some(meet(range));
/** When and why a packet carried something of the range; nothing if it did not. */
const carrying = (range, { at_ms, runs }) => runs.filter(meet(range)).slice(0, 1).map((run) => ({ at_ms, cause: run[2] }));

/** Everything that can be pointed at: time, sequence numbers, text. */
function readings(stall) {
  const sends = stall.sends.map((send) => ({ ms: send.at_ms, range: [send.runs[0][0], send.runs.at(-1)[1]],
    text: `${send.runs.map((run) => `${numbers(run)} ${causeLook(run[2]).text}`).join(", ")}; ${figure(send.bytes)} B` }));
  const deliveries = stall.deliveries.filter((bar) => bar.sequence).map((bar) => ({
    ms: bar.delivered_ms, range: bar.sequence,
    text: `message ${bar.message} (${numbers(bar.sequence)}) ${ending(stall)}, ${millis(bar.delivered_ms - bar.intended_ms)} ms after its ` +
      (stall.is_by_ack ? "first transmission" : "intended sending") }));
  const acks = stall.acknowledgements.map((ack) => ({ ms: ack.at_ms,
    range: [ack.cumulative, ack.gaps.at(-1)?.[1] ?? ack.cumulative],
    text: `acknowledged up to ${ack.cumulative < 0 ? "before +0" : "+" + ack.cumulative}` +
      (ack.gaps.length ? `, and beyond a gap ${ack.gaps.map(numbers).join(", ")}` : "") }));
  const expiries = stall.expiries.map((expiry) => ({ ms: expiry.at_ms, range: null,
    text: `the retransmission timer expired; the timeout is now ${millis(expiry.rto_ms)} ms` }));
  return [...sends, ...deliveries, ...acks, ...expiries].sort((a, b) => a.ms - b.ms);
}

/** Draws with (0, 0) at a time and sequence number, in CSS pixels. */
function painter(u) {
  const { ctx } = u;
  const ratio = uPlot.pxRatio;
  const x = (ms) => u.valToPos(ms / 1000, "x", true);
  const y = (number) => u.valToPos(number, "y", true);
  // Where sequence numbers are dense, marks shrink before they run into each other.
  const apart = Math.abs(y(0) - y(1)) / ratio;
  const size = ratio * Math.min(1, Math.max(0.5, apart / 11));
  const shape = (outline, ms, number, paint, scale = size) => {
    ctx.save();
    ctx.translate(x(ms), y(number));
    ctx.scale(scale, scale);
    paint(new Path2D(outline));
    ctx.restore();
  };
  const line = (points, look) => {
    ctx.save();
    ctx.strokeStyle = look.stroke;
    ctx.lineWidth = look.width * ratio;
    ctx.setLineDash((look.dash ?? []).map((part) => part * ratio));
    ctx.beginPath();
    points.forEach(([px, py], at) => at ? ctx.lineTo(px, py) : ctx.moveTo(px, py));
    ctx.stroke();
    ctx.restore();
  };
  return { ctx, ratio, size, x, y, shape, line, box: u.bbox };
}

function paintWait(p, stall) {
  const { message } = stall;
  if (!message.sequence) return;
  const [low, high] = message.sequence;
  const half = Math.max(8 * p.size, 7 * p.ratio);
  const [left, right] = [p.x(message.intended_ms), p.x(message.delivered_ms)];
  p.ctx.fillStyle = colour("wait");
  p.ctx.fillRect(left, p.y(high) - half, right - left, p.y(low) - p.y(high) + 2 * half);
}

/** The longest stretch of the bar that is to be seen and has no mark on it. */
function freeStretch(p, { message, sends, expiries }) {
  const within = (ms) => Math.min(Math.max(p.x(ms), p.box.left), p.box.left + p.box.width);
  const [low, high] = message.sequence;
  const onBar = sends.filter(({ runs }) => touches([low, high], runs));
  const times = [message.intended_ms, message.delivered_ms, ...[...onBar, ...expiries].map((mark) => mark.at_ms)];
  const edges = times.filter((ms) => ms >= message.intended_ms && ms <= message.delivered_ms)
    .map(within).sort((a, b) => a - b);
  const stretches = edges.slice(1).map((right, at) => [edges[at], right]);
  return stretches.reduce((best, next) => next[1] - next[0] > best[1] - best[0] ? next : best, [0, 0]);
}

/** What the bar means, where there is room to say it. */
function paintWaitText(p, stall) {
  const { message } = stall;
  if (!message.sequence) return;
  const [left, right] = freeStretch(p, stall);
  const text = `waited ${millis(message.delivered_ms - message.intended_ms)} ms`;
  p.ctx.font = font(12 * p.ratio);
  if (p.ctx.measureText(text).width > right - left - 20 * p.ratio) return;
  const place = [(left + right) / 2, (p.y(message.sequence[0]) + p.y(message.sequence[1])) / 2 + p.ratio];
  p.ctx.textAlign = "center";
  p.ctx.textBaseline = "middle";
  // Acknowledgements cross the bar: the text needs a ground of its own.
  p.ctx.lineWidth = 5 * p.ratio;
  p.ctx.lineJoin = "round";
  p.ctx.strokeStyle = colour("paper");
  p.ctx.strokeText(text, ...place);
  p.ctx.fillStyle = colour("ink");
  p.ctx.fillText(text, ...place);
}

function paintExpiries(p, stall) {
  p.ctx.font = font(11 * p.ratio);
  p.ctx.textAlign = "left";
  p.ctx.textBaseline = "top";
  let free = -Infinity;
  for (const expiry of stall.expiries) {
    const x = p.x(expiry.at_ms);
    p.line([[x, p.box.top], [x, p.box.top + p.box.height]], { stroke: colour("timeout"), width: 1, dash: [3, 3] });
    if (x < free) continue;
    p.ctx.fillStyle = colour("timeout");
    p.ctx.fillText("RTO", x + 4 * p.ratio, p.box.top + 2 * p.ratio);
    free = x + 32 * p.ratio;
  }
}

function paintAcknowledgements(p, stall) {
  const stroke = colour("ack");
  const corners = [];
  stall.acknowledgements.forEach((ack, at) => {
    const x = p.x(ack.at_ms);
    if (at) corners.push([x, corners.at(-1)[1]]);
    corners.push([x, p.y(ack.cumulative)]);
    // Faint: during a stall each one spans nearly everything that the one before did.
    p.ctx.globalAlpha = 0.4;
    for (const [low, high] of ack.gaps) {
      const half = 5 * p.size;
      p.line([[x, p.y(low) + half], [x, p.y(high) - half]], { stroke, width: 1.5 });
    }
    p.ctx.globalAlpha = 1;
  });
  if (corners.length) {
    corners.push([p.box.left + p.box.width, corners.at(-1)[1]]);
    p.line(corners, { stroke, width: 1.5 });
  }
}

function paintPackets(p, stall) {
  for (const send of stall.sends) {
    for (const [low, high, cause] of send.runs) {
      const fill = colour(causeLook(cause).colour);
      if (high > low) {
        p.line([[p.x(send.at_ms), p.y(low)], [p.x(send.at_ms), p.y(high)]], { stroke: fill, width: 2 });
      }
      for (const number of high > low ? [low, high] : [low]) {
        p.shape(causeLook(cause).shape, send.at_ms, number, (path) => { p.ctx.fillStyle = fill; p.ctx.fill(path); });
      }
    }
  }
  for (const bar of stall.deliveries) {
    if (!bar.sequence) continue;
    p.shape(DELIVERY_SHAPE, bar.delivered_ms, bar.sequence[1], (path) => {
      p.ctx.lineWidth = 1.75 * p.ratio / p.size;
      p.ctx.strokeStyle = colour("ack");
      p.ctx.fillStyle = colour("paper");
      p.ctx.fill(path);
      p.ctx.stroke(path);
    });
  }
}

/** The transmissions of the message itself, large and above everything else. */
function paintOwnPackets(p, stall) {
  const own = stall.message.sequence;
  if (!own) return;
  for (const { at_ms, cause } of stall.sends.flatMap((send) => carrying(own, send))) {
    p.shape(causeLook(cause).shape, at_ms, own[0], (path) => {
      p.ctx.lineWidth = 3;
      p.ctx.lineJoin = "round";
      p.ctx.strokeStyle = colour("paper");
      p.ctx.fillStyle = colour(causeLook(cause).colour);
      p.ctx.stroke(path);
      p.ctx.fill(path);
    }, p.ratio);
  }
}

function paintStall(u, stall) {
  const p = painter(u);
  p.ctx.save();
  p.ctx.beginPath();
  p.ctx.rect(p.box.left, p.box.top, p.box.width, p.box.height);
  p.ctx.clip();
  paintWait(p, stall);
  paintExpiries(p, stall);
  paintAcknowledgements(p, stall);
  paintPackets(p, stall);
  paintOwnPackets(p, stall);
  paintWaitText(p, stall);
  p.ctx.restore();
}

/** The mark nearest to the cursor, if it is near. */
function readingAt(u, marks) {
  const { left, top } = u.cursor;
  if (left == null || left < 0) return null;
  let [best, least] = [null, 24];
  for (const mark of marks) {
    const dx = u.valToPos(mark.ms / 1000, "x") - left;
    if (Math.abs(dx) > least) continue;
    const [low, high] = mark.range ?? [u.scales.y.min, u.scales.y.max];
    const dy = Math.max(0, u.valToPos(high, "y") - top, top - u.valToPos(low, "y"));
    const distance = Math.hypot(dx, dy + (mark.range ? 0 : 6));
    if (distance < least) [best, least] = [mark, distance];
  }
  return best;
}

const stallHeight = () => isNarrow() ? 320 : 380;

function stallChart(container, reading, stall) {
  const marks = readings(stall);
  const hint = "Point at a mark to read it.";
  const whole = [stall.from_ms / 1000, stall.until_ms / 1000];
  const data = [marks.map((mark) => mark.ms / 1000), marks.map((mark) => mark.range?.[1] ?? null),
    marks.map((mark) => mark.range ? Math.max(mark.range[0], -1) : null)];
  reading.textContent = hint;
  const whenRange = (u, min, max) => min == null ? whole : [Math.max(min, whole[0]), Math.min(max, whole[1])];
  const chart = new uPlot({
    width: container.clientWidth || 600, height: stallHeight(), padding: [8, 18, 0, 0],
    scales: {
      x: { time: false, auto: false, min: whole[0], max: whole[1], range: whenRange },
      y: { range: (u, min, max) => min == null ? [-1, 5] : [min - 0.8, Math.max(max, min + 3) + 1] },
    },
    axes: [
      { ...axisLook(), label: "time since the run began, s", labelSize: 22, size: 30, space: 64 },
      { ...axisLook(), size: 46, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000],
        values: (u, splits) => splits.map((split) => split < 0 ? "" : "+" + split) },
    ],
    series: [{}, ...[1, 2].map(() => ({ scale: "y", paths: () => null, points: { show: false } }))],
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: true, y: false, setScale: true }, bind: {
      // uPlot would return to the extent of the data, which is less than the window.
      dblclick: (u) => () => { u.setScale("x", { min: whole[0], max: whole[1] }); return null; },
    } },
    hooks: {
      draw: [(u) => paintStall(u, stall)],
      setCursor: [(u) => {
        const mark = readingAt(u, marks);
        reading.textContent = mark ? `${seconds(mark.ms)}: ${mark.text}` : hint;
      }],
    },
  }, data, container);
  return { chart, whole };
}

/** Buttons for those who cannot drag: on a phone, by keyboard. */
function zoomBar({ chart, whole }) {
  const move = (scale, shift) => {
    const { min, max } = chart.scales.x;
    const span = Math.min((max - min) * scale, whole[1] - whole[0]);
    const middle = (min + max) / 2 + shift * (max - min);
    const from = Math.min(Math.max(middle - span / 2, whole[0]), whole[1] - span);
    chart.setScale("x", { min: from, max: from + span });
  };
  return element("div", { class: "bar" },
    button("+", "zoom in", () => move(0.5, 0)),
    button("\u2212", "zoom out", () => move(2, 0)),
    button("\u2190", "earlier", () => move(1, -0.4)),
    button("\u2192", "later", () => move(1, 0.4)),
    button("whole", "show the whole stall", () => chart.setScale("x", { min: whole[0], max: whole[1] })));
}

const listed = (words) => words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " and " + words.at(-1);

/** What happened to the message, in words. */
function story(stall) {
  const { message, sends, deliveries } = stall;
  if (!message.sequence) return "";
  const since = (ms) => millis(ms - message.intended_ms) + " ms";
  const own = sends.flatMap((send) => carrying(message.sequence, send)).filter(({ at_ms }) => at_ms <= message.delivered_ms);
  const first = own.find((send) => send.cause === "new");
  const again = own.filter((send) => send.cause !== "new").map((send) => `${since(send.at_ms)} (${causeLook(send.cause).short})`);
  const sentences = [];
  if (first) sentences.push(first.at_ms - message.intended_ms < 1 ? "It was sent at once." : `It was sent after ${since(first.at_ms)}.`);
  if (again.length) sentences.push(`It was retransmitted after ${listed(again)}.`);
  // Messages that the same packet releases are delivered at the same time, one after the other.
  const freed = deliveries.filter((bar) => bar.message > message.message && bar.delivered_ms >= message.delivered_ms &&
    bar.delivered_ms < message.delivered_ms + 5 && bar.delivered_ms - bar.intended_ms > 5);
  if (freed.length > 1) sentences.push(`${figure(freed.length)} later messages were ${ending(stall)} with it.`);
  return " " + sentences.join(" ");
}

function stallArticle(run, index) {
  const stall = run.worst_stall;
  const heading = element("h3", {}, swatch(index), " " + run.profile);
  const article = element("article", { "data-profile": run.profile }, heading);
  if (!stall) {
    article.append(element("p", { class: "found" }, "No trace of it."));
    return { article, draw: () => null };
  }
  const { message } = stall;
  const found = element("p", { class: "found" }, `Message ${figure(message.message)} of association ${stall.connection}, stream ${message.stream}, waited `,
    element("b", {}, millis(message.delivered_ms - message.intended_ms) + " ms"),
    ` and was ${ending(stall)} at ${seconds(message.delivered_ms)}.` + story(stall) + (stall.is_cut ? " Too many marks to draw; the last are left out." : ""));
  const title = element("p", { class: "axis-title" }, `sequence number (SCTP: TSN, TCP: segment), counted from ${figure(stall.base)}`);
  const container = element("div", { class: "chart stall" });
  const reading = element("p", { class: "reading", "aria-live": "polite" });
  const tools = element("div");
  article.append(found, tools, title, container, reading);
  const draw = () => {
    const made = stallChart(container, reading, stall);
    tools.replaceChildren(zoomBar(made));
    const observer = followWidth(container, made.chart, stallHeight);
    return () => { observer.disconnect(); made.chart.destroy(); };
  };
  return { article, draw };
}

function buildKey() {
  const glyph = (...children) => svg("svg", { width: 18, height: 18, viewBox: "-9 -9 18 18", "aria-hidden": "true" }, ...children);
  const mark = (name) => glyph(svg("path", { d: causeLook(name).shape, style: `fill: var(--${causeLook(name).colour})` }));
  const stroke = (d, name, extra = "") => glyph(svg("path", { d, style: `fill: none; stroke: var(--${name}); stroke-width: 1.75; ${extra}` }));
  const occurring = new Set(REPORT.runs.flatMap((run) => run.worst_stall?.sends ?? []).flatMap((send) => send.runs.map((run) => run[2])));
  const entries = [
    ...[...Object.keys(CAUSES), ...[...occurring].filter((cause) => !(cause in CAUSES))]
      .filter((cause) => occurring.has(cause)).map((cause) => [mark(cause), causeLook(cause).text]),
    [stroke("M-8 5 L0 5 L0 -4 L8 -4", "ack"), "cumulative acknowledgement"],
    [stroke("M0 -7 L0 7", "ack", "stroke-width: 2.5"), "gap acknowledgement"],
    [stroke(DELIVERY_SHAPE, "ack"), REPORT.runs.some((run) => run.worst_stall?.is_by_ack) ? "acknowledged for the first time" : "delivered"],
    [stroke("M0 -9 L0 9", "timeout", "stroke-dasharray: 3 3"), "retransmission timer expired"],
    [glyph(svg("rect", { x: -9, y: -6, width: 18, height: 12, style: "fill: var(--wait)" })), "the wait"],
  ];
  document.getElementById("key").append(...entries.map(([sign, text]) => element("li", {}, sign, text)));
}
