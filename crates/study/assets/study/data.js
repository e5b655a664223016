// The data of the page, as stored in it.

const STUDY = JSON.parse(document.getElementById("data").textContent);
