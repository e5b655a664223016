// Asks the server, and shows its answer. The last answer stays until there is another.

const nodes = Object.fromEntries(["answer", "state", "progress", "problem", "figures", "table", "bounds"].map((id) => [id, document.getElementById(id)]));
const COLUMNS = [["p50", "flow.latency.p50"], ["p99", "flow.latency.p99"], ["p99.9", "flow.latency.p999"], ["largest", null],
  ["packets per message", "flow.two_way.packets_per_message"], ["bytes per byte", "flow.two_way.wire_bytes_per_payload_byte"], ["not delivered", "flow.undelivered"]];

let article = null;
let asked = null;

function tellProblem(text) {
  nodes.problem.hidden = !text;
  nodes.problem.textContent = text;
}

function post(path, type, body, signal) {
  return fetch(path, { method: "POST", headers: { "content-type": type }, body, signal });
}

/** The text of a response, or an error with it. */
async function textOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(text || `the server answers ${response.status}`);
  return text;
}

/** The lines of a response as they arrive, as JSON. */
async function* linesOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

function onLine(line) {
  if (line.problem) throw new Error(line.problem);
  if (line.runs) {
    nodes.progress.max = line.runs;
    nodes.progress.value = line.done;
    nodes.state.textContent = `${line.done} of ${line.runs} runs`;
  } else if (line.waiting) {
    nodes.state.textContent = "waiting for other pages";
  }
  return line.answer;
}

/** Has the server run `settings`; a question that is still open is given up. */
async function ask(settings) {
  asked?.abort();
  const own = asked = new AbortController();
  const begun = performance.now();
  nodes.answer.setAttribute("aria-busy", "true");
  nodes.progress.value = 0;
  try {
    const response = await post("run", "application/json", JSON.stringify(settings), own.signal);
    if (!response.ok) await textOf(response);
    let answer = null;
    for await (const line of linesOf(response)) answer = onLine(line) ?? answer;
    if (own !== asked) return;
    if (!answer) throw new Error("the server has ended without an answer");
    show(answer);
    tellProblem("");
    const took = plain((performance.now() - begun) / 1000, 1);
    nodes.state.textContent = `${figure(answer.study.runs)} runs, ${durationText(answer.study.simulated_s)} simulated in ${took}${THIN_SPACE}s`;
  } catch (error) {
    if (own !== asked || error.name === "AbortError") return;
    tellProblem(error instanceof TypeError ? "The server cannot be reached: is rexmit lab serve still running?" : error.message);
    nodes.state.textContent = article ? "The results are those of earlier settings." : "";
  }
  nodes.answer.setAttribute("aria-busy", "false");
}

function show(answer) {
  STUDY = answer;
  looks = labelLooks();
  const [latency] = STUDY.figures;
  if (article) {
    Object.assign(article.figure, latency);
  } else {
    article = { figure: latency, ...figureArticle(latency) };
    nodes.figures.replaceChildren(article.article);
  }
  article.draw();
  nodes.bounds.hidden = latency.groups.length === STUDY.cells.length;
  drawTable(latency);
}

function drawTable(latency) {
  const head = element("tr", {}, element("th", { scope: "col" }, "system"), ...COLUMNS.map(([name]) => element("th", { scope: "col" }, name)));
  const quantityAt = new Map(STUDY.quantities.map(({ name }, at) => [name, at]));
  const rows = STUDY.cells.map((cell) => {
    const [{ label }] = cell.point;
    const largest = latency.groups.find((group) => group.label === label)?.x.at(-1);
    const values = COLUMNS.map(([, name]) => {
      if (!name) return largest == null ? "\u2013" : millis(largest);
      const value = cell.values[quantityAt.get(name)];
      return value ? meanText(value[0], value[1], "ratio") : "\u2013";
    });
    const sign = looks.has(label) ? [swatch(looks.get(label)), " "] : [];
    return element("tr", { "data-system": label }, element("th", { scope: "row" }, ...sign, label), ...values.map((text) => element("td", {}, text)));
  });
  nodes.table.replaceChildren(element("table", { class: "plain numbers" }, element("thead", {}, head), element("tbody", {}, ...rows)));
}
