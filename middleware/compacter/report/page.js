"use strict";
// A click on a column's head sorts the table by it; a second one turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.n === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.n);
      };
      const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
// A link to a conversation opens it.
const show = () => {
  const story = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!story || story.tagName !== "DETAILS") return;
  story.open = true;
  story.scrollIntoView();
};
addEventListener("hashchange", show);
show();
// Paper has no clicks: conversations are printed open, and closed again afterwards.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details.story:not([open])")];
  for (const story of closed) story.open = true;
});
addEventListener("afterprint", () => {
  for (const story of closed) story.open = false;
});
