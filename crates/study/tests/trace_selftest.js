// Runs in the page of a trace after it has drawn, and posts what it found to the document around it.
"use strict";
(async () => {
  const found = { errors: window.selftestErrors };
  window.alert = (text) => found.errors.push("alert: " + text);
  const only = (all) => [...document.querySelectorAll(all)];
  const painted = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 3; at < data.length; at += 4) if (data[at] > 200) count += 1;
    return count;
  };
  try {
    await new Promise((done) => setTimeout(done, 100));
    found.drawn = only(".stall canvas").map(painted);
    found.images = only("img").length;
    found.title = document.querySelector("h1").textContent;
    found.cut = document.getElementById("cut").textContent;
    found.overflow = document.documentElement.scrollWidth - window.innerWidth;
  } catch (error) {
    found.errors.push(String(error));
  }
  parent.postMessage(JSON.stringify(found), "*");
})();
