// The page of a trace: the stalls of each association, drawn as in the page of a comparison.

const TRACE = JSON.parse(document.getElementById("data").textContent);

/** A stall of an association in the form of the worst stall of a run. */
const named = ({ name, stalls }) => stalls.map((worst_stall, at) =>
  ({ profile: stalls.length > 1 ? `${name}, ${at + 1} of ${stalls.length}` : name, worst_stall }));
const REPORT = { runs: TRACE.associations.flatMap(named) };

/** What is known of an association besides its stalls. */
const summary = ({ name, packets, retransmissions, acknowledged, unacknowledged }) =>
  `${name}: ${figure(packets)} packets with data, ${figure(retransmissions)} of them with retransmissions; ` +
  `${figure(acknowledged)} messages acknowledged` + (unacknowledged ? `, ${figure(unacknowledged)} not` : "") + ".";

const cuts = [];
if (TRACE.left_out) cuts.push(`${figure(TRACE.left_out)} associations with shorter waits are left out.`);
if (TRACE.is_cut) cuts.push("The file has more events than are read: its end is not shown.");
document.getElementById("cut").textContent = cuts.join(" ");
buildKey();
const parts = document.getElementById("stalls");
const drawn = [];
let index = 0;
for (const association of TRACE.associations) {
  parts.append(element("p", { class: "note" }, summary(association)));
  for (const run of named(association)) {
    const stall = stallArticle(run, index++);
    parts.append(stall.article);
    drawn.push(stall);
  }
}

function drawStalls() {
  for (const stall of drawn) {
    stall.destroy?.();
    stall.destroy = stall.draw();
  }
}

drawStalls();
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawStalls);
window.matchMedia("(max-width: 640px)").addEventListener("change", drawStalls);
