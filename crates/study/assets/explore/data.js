// The choices of the page, and the latest answer in the form of a study page.

const OFFER = JSON.parse(document.getElementById("data").textContent);
let STUDY = { axes: [], figures: [], cells: [], quantities: [] };

// All that is answered is shown: what is compared is chosen before.
const isSelected = () => true;
const unreached = () => [];
