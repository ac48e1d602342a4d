// Says what the mark at the pointer stands for, or the nearest point of a line. The tables say all of it, too.
const told = document.getElementById("told");

// The heads and cells of the row that a mark stands for.
function row(plot, place) {
  const table = plot.closest("article").querySelector("table");
  const cells = [...table.tBodies[0].rows[place].cells];
  return cells.map((cell, at) => `${table.tHead.rows[0].cells[at].textContent}: ${cell.textContent.trim()}`).join("; ");
}

function nearest(plot, event) {
  const lines = plot.querySelector("[data-points]");
  if (!lines) return null;
  const here = new DOMPoint(event.clientX, event.clientY).matrixTransform(lines.getScreenCTM().inverse());
  const points = lines.dataset.points.split(" ").map((each) => each.split(",").map(Number));
  const far = ([, x, y]) => (x - here.x) ** 2 + (y - here.y) ** 2;
  const [place, x, y] = points.reduce((one, other) => (far(other) < far(one) ? other : one));
  document.querySelectorAll("circle.here").forEach((each) => each.remove());
  const mark = document.createElementNS(lines.namespaceURI, "circle");
  for (const [name, value] of Object.entries({ class: "here", cx: x, cy: y, r: 4 })) mark.setAttribute(name, value);
  lines.append(mark);
  return row(plot, place);
}

function saying(event) {
  const plot = event.target.closest?.("figure svg");
  if (!plot) return null;
  const said = event.target.closest("[data-told]")?.dataset.told;
  return said ?? nearest(plot, event);
}

document.addEventListener("pointermove", (event) => {
  const said = saying(event);
  told.hidden = !said;
  if (!said) return;
  told.textContent = said;
  const right = Math.min(event.clientX + 12, innerWidth - told.offsetWidth - 4);
  const below = event.clientY + 16 + told.offsetHeight > innerHeight;
  told.style.left = `${Math.max(4, right)}px`;
  told.style.top = `${below ? event.clientY - told.offsetHeight - 12 : event.clientY + 16}px`;
});
