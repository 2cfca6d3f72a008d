// Fetch the page again every few seconds, and replace the parts that changed. What the reader has opened, sorted,
// scrolled to or focused stays so.
const EVERY = 3000; // Milliseconds.
const parts = (page) =>
  new Map([...page.querySelectorAll("header, main > :not([role=status])")].map((part) => [
    part.id ? part.querySelector("h2").textContent : part.tagName, part,
  ]));
const each = (part, kind) => [part, ...part.querySelectorAll("*")].filter((one) => one.matches(kind));
const held = "summary, a, button, .scroll";
const replace = (was, now) => {
  const details = each(now, "details"), boxes = each(now, ".scroll");
  each(was, "details").forEach((one, place) => details[place] && (details[place].open = one.open));
  const lefts = each(was, ".scroll").map((one) => one.scrollLeft);
  const focused = each(was, held).indexOf(document.activeElement);
  was.replaceWith(now);
  for (const head of was.querySelectorAll("th[aria-sort]")) {
    sorted(now.querySelector("table"), head.cellIndex, head.getAttribute("aria-sort") === "descending");
  }
  boxes.forEach((box, place) => (box.scrollLeft = lefts[place] ?? 0));
  each(now, held)[focused]?.focus({ preventScroll: true });
};
const html = (found) => new Map([...found].map(([name, part]) => [name, part.outerHTML]));
const status = document.createElement("p");
status.setAttribute("role", "status");
let told = html(parts(document)), tag = "";
document.querySelector("main").prepend(status);
const ask = async () => {
  const reply = await fetch(location.pathname, { headers: { "if-none-match": tag } });
  if (reply.status === 304) return;
  if (!reply.ok) throw new Error(reply.statusText);
  tag = reply.headers.get("etag") ?? "";
  const fresh = parts(new DOMParser().parseFromString(await reply.text(), "text/html")), known = parts(document);
  const now = html(fresh);
  let before = status;
  for (const [name, part] of fresh) {
    const was = known.get(name);
    if (!was) before.after(part);
    else if (now.get(name) !== told.get(name)) replace(was, part);
    if (name !== "HEADER") before = parts(document).get(name);
  }
  for (const [name, part] of known) if (!fresh.has(name)) part.remove();
  told = now;
};
const watch = async () => {
  try {
    if (!document.hidden) await ask();
    status.textContent = "";
  } catch {
    status.textContent = "The server does not respond; these are its last figures.";
  }
  setTimeout(watch, EVERY);
};
setTimeout(watch, EVERY);
