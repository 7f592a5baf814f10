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

// `/` leads to the search.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  const search = document.querySelector("[data-search]");
  if (event.key === "/" && !typing && search) {
    event.preventDefault();
    search.focus();
  }
});

// data-live="ADDRESS": rows come in at the top as the server sends them. A button with data-pause holds them back.
document.querySelectorAll("[data-live]").forEach((list) => {
  const most = Number(list.dataset.most || 200);
  const pause = document.querySelector(`[data-pause="${list.id}"]`);
  let paused = false;
  let held = [];
  const put = (html) => {
    const part = document.createElement("template");
    part.innerHTML = html;
    for (const row of part.content.children) {
      const known = document.getElementById(row.id);
      if (known) known.replaceWith(row);
      else {
        row.classList.add("fresh");
        list.prepend(row);
      }
    }
    while (list.children.length > most) list.lastElementChild.remove();
  };
  const source = new EventSource(list.dataset.live);
  source.addEventListener("rows", (event) => (paused ? held.push(event.data) : put(event.data)));
  pause?.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", paused);
    if (!paused) held.splice(0).forEach(put);
  });
});

// data-refresh="SECONDS": a part of the page is asked for again by its own address, and put in place.
document.querySelectorAll("[data-refresh]").forEach((part) => {
  const again = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(part.dataset.from || location.href, { headers: { "x-part": part.id } });
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(part.id);
      if (!fresh) return;
      part.replaceChildren(...fresh.childNodes);
      if (!fresh.dataset.refresh) clearInterval(timer);
    } catch { /* The server is away: the next time tells. */ }
  };
  const timer = setInterval(again, Number(part.dataset.refresh) * 1000);
});

// data-copy="ID": copies what stands there.
document.querySelectorAll("[data-copy]").forEach((button) =>
  button.addEventListener("click", () => navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent)));
