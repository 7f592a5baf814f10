// What pages do beyond links and forms. Everything works without it; with it, lists move by themselves.
"use strict";

// A phone begins with the menu closed.
const menu = document.querySelector("details.menu");
if (menu && matchMedia("(max-width: 860px)").matches) menu.open = false;

// Forms that ask before they act.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  setTimeout(() => event.target.querySelectorAll("button").forEach((button) => (button.disabled = true)));
});
addEventListener("pageshow", () => document.querySelectorAll("button:disabled").forEach((button) => (button.disabled = false)));

// Filters apply when they are chosen.
document.querySelectorAll("form.filters select").forEach((select) =>
  select.addEventListener("change", () => select.form.requestSubmit()));

// A click on the head of a column sorts the rows of this page: by time, by number, or by text.
const sortKey = (row, n) => {
  const cell = row.cells[n];
  const time = cell?.querySelector("time");
  if (time) return time.dateTime;
  const text = cell?.textContent.trim() ?? "";
  const number = Number(text.replace(/[^0-9.-]/g, ""));
  return cell?.classList.contains("num") && !Number.isNaN(number) ? number : text;
};
document.querySelectorAll("table.list:not(.events) thead th").forEach((head) => {
  const body = head.closest("table").tBodies[0];
  if (!body || body.rows.length < 2 || !head.textContent.trim()) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const n = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    head.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
    body.append(...[...body.rows].sort((a, b) => order(sortKey(a, n), sortKey(b, n))));
  });
});

// The browser's own clock: offered, and taken if nobody has chosen one.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
document.querySelectorAll("[data-zone]").forEach((link) => {
  const address = new URL(link.href);
  address.searchParams.set("zone", zone);
  const unset = link.closest("[data-zone-unset]");
  const shown = [...link.parentElement.childNodes].some((node) => node.textContent.includes(zone));
  link.href = address;
  link.textContent = zone;
  link.hidden = shown;
  if (unset && zone) fetch(address, { redirect: "manual" });
});

// `/` leads to the search: of the page, or else of the header.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  const search = document.querySelector("[data-search]") || document.querySelector("[data-find]");
  if (event.key === "/" && !typing && search) {
    event.preventDefault();
    search.focus();
  }
});

// data-live="ADDRESS": rows come in as the server sends them, in the order of their ids, the highest on top. A button
// with data-pause holds them back, and data-lamp says whether they come. A page out of sight gives its line back.
document.querySelectorAll("[data-live]").forEach((list) => {
  const most = Number(list.dataset.most || 200);
  const pause = document.querySelector(`[data-pause="${list.id}"]`);
  const lamp = document.querySelector(`[data-lamp="${list.id}"]`);
  let source, last, paused, dim;
  const shine = (on) => {
    clearTimeout(dim);
    // It comes back every half minute: only a longer silence is told.
    dim = setTimeout(() => lamp?.classList.toggle("on", on), on ? 0 : 4000);
  };
  const put = (row) => {
    const known = document.getElementById(row.id);
    if (known) return known.replaceWith(row);
    row.classList.add("fresh");
    list.insertBefore(row, [...list.children].find((other) => other.id < row.id) || null);
  };
  const open = () => {
    if (source || paused || document.hidden) return;
    const address = new URL(list.dataset.live, location);
    if (last) address.searchParams.set("after", last);
    source = new EventSource(address);
    source.addEventListener("open", () => shine(true));
    source.addEventListener("error", () => {
      shine(false);
      if (source?.readyState !== EventSource.CLOSED) return;
      shut();
      setTimeout(open, 15000);
    });
    source.addEventListener("rows", (event) => {
      last = event.lastEventId || last;
      const part = document.createElement("template");
      part.innerHTML = event.data;
      [...part.content.children].forEach(put);
      document.querySelectorAll(".empty").forEach((word) => word.remove());
      while (list.children.length > most) list.lastElementChild.remove();
    });
  };
  const shut = () => {
    source?.close();
    source = undefined;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? shut() : open()));
  pause?.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", paused);
    shut();
    clearTimeout(dim);
    lamp?.classList.toggle("on", false);
    open();
  });
  if (lamp) lamp.hidden = false;
  open();
});

// data-refresh="SECONDS": a part of the page is asked for again by its own address, and put in place.
document.querySelectorAll("[data-refresh]").forEach((part) => {
  const again = async () => {
    // What somebody has the keyboard or the mouse on stays.
    const inUse = () => part.contains(document.activeElement) || part.querySelector(":active");
    if (document.hidden || inUse()) return;
    try {
      const answer = await fetch(part.dataset.from || location.href);
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(part.id);
      if (!fresh || inUse()) return;
      const opened = [...part.querySelectorAll("details")].map((one) => one.open);
      part.replaceChildren(...fresh.childNodes);
      part.querySelectorAll("details").forEach((one, n) => (one.open = opened[n] ?? one.open));
      if (!fresh.dataset.refresh) clearInterval(timer);
    } catch { /* The server is away: the next time tells. */ }
  };
  const timer = setInterval(again, Number(part.dataset.refresh) * 1000);
});

// data-copy="ID": copies what stands there.
document.querySelectorAll("[data-copy]").forEach((button) =>
  button.addEventListener("click", () => navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent)));
