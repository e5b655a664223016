// What the page shows, as it stands in the page.

const STUDY = JSON.parse(document.getElementById("data").textContent);
