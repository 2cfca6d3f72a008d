"use strict";
// A click on a column's header sorts the table by it; a second one reverses the order.
const sorted = (table, column, down) => {
  const value = (row) => {
    const cell = row.cells[column];
    return cell.dataset.n === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.n);
  };
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    if (place === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
  rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
  table.tBodies[0].append(...rows.map(([, row]) => row));
};
addEventListener("click", (event) => {
  const head = event.target.closest("table.sortable th:has(button)");
  if (head) sorted(head.closest("table"), head.cellIndex, head.getAttribute("aria-sort") !== "descending");
});
// Many conversations: some at a time, and only those with the words that somebody types.
const filter = document.querySelector(".filter");
if (filter) {
  const input = filter.querySelector("input");
  const more = filter.querySelector("button");
  const step = Number(more.dataset.more);
  let most = step;
  const draw = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let matching = 0;
    for (const row of document.querySelectorAll("table.sortable tbody tr")) {
      const text = row.textContent.toLowerCase();
      const matches = words.every((word) => text.includes(word));
      matching += matches;
      row.hidden = !matches || matching > most;
      const story = document.getElementById(row.querySelector("a").hash.slice(1));
      if (story) story.hidden = row.hidden;
    }
    more.hidden = matching <= most;
  };
  input.addEventListener("input", () => { most = step; draw(); });
  more.addEventListener("click", () => { most += step; draw(); });
  draw();
}
// A link to a conversation opens it.
const show = () => {
  const story = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!story || story.tagName !== "DETAILS") return;
  story.hidden = false;
  story.open = true;
  story.scrollIntoView();
};
addEventListener("hashchange", show);
show();
// Conversations are opened for printing, and closed again afterwards.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details.story:not([open])")];
  for (const story of closed) story.open = true;
});
addEventListener("afterprint", () => {
  for (const story of closed) story.open = false;
});
