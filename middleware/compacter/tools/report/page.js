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
// A link to a conversation opens it.
const show = () => {
  const story = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!story || story.tagName !== "DETAILS") return;
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
