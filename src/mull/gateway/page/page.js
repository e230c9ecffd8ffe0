"use strict";
const $ = (id) => document.getElementById(id);
const requests = new Map();
let chosen = null, found = null, by = "model", shown = null, drawing = false;
let token = new URLSearchParams(location.search).get("key") || sessionStorage.getItem("mull-token") || "";
if (location.search) history.replaceState(null, "", location.pathname);

const el = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const number = (n) => n == null ? "?" : n >= 1e6 ? (n / 1e6).toFixed(1) + "M" : n >= 1e4 ? (n / 1e3).toFixed(1) + "k" : n.toLocaleString("en");
const money = (n) => n == null ? "?" : n === 0 ? "$0" : n < 0.01 ? "$" + n.toPrecision(2) : "$" + n.toFixed(2);
const seconds = (n) => n == null ? "" : n < 1 ? Math.round(n * 1000) + " ms" : n.toFixed(1) + " s";
const sum = (list, read) => list.reduce((all, one) => all + (read(one) || 0), 0);
const quantile = (list, q) => {
  const sorted = list.filter((n) => n != null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] : null;
};

async function ask(path) {
  const headers = token ? {authorization: "Bearer " + token} : {};
  const response = await fetch(new URL(path, document.baseURI), {headers});
  if (response.status === 401) throw new Refused();
  return response;
}
class Refused extends Error {}

function showDoor(wrong) {
  $("door").hidden = false; $("all").hidden = true;
  $("refused").textContent = wrong ? "Unknown token." : "";
  $("token").focus();
}
$("door").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  run();
});

async function run() {
  for (;;) {
    try {
      const live = await ask("watch/live");
      $("door").hidden = true; $("all").hidden = false;
      if (token) sessionStorage.setItem("mull-token", token);
      await refill();
      state("live", "live");
      await read(live.body.getReader());
      state("lost", "connection lost, trying again …");
    } catch (error) {
      if (error instanceof Refused) { state("", "a token is needed"); showDoor(Boolean(token)); return; }
      state("lost", "connection lost, trying again …");
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
}
async function refill() {
  requests.clear();
  for (const one of await (await ask("watch/requests")).json()) requests.set(one.id, one);
  redraw();
}
async function read(reader) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    rest += decoder.decode(value, {stream: true});
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts)
      if (part.startsWith("data: ")) await take(JSON.parse(part.slice(6)));
  }
}
async function take(message) {
  if (message.type === "missed") return refill();
  if (message.type === "piece") { if (message.id === chosen) grow(message.kind, message.text); return; }
  const one = message.request;
  requests.set(one.id, one);
  if (one.id === chosen && one.state !== "open") choose(one.id, false);
  redraw();
}
function state(className, text) { $("state").className = className; $("state").textContent = text; }

function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; tiles(); charts(); list(); });
}
function tiles() {
  const all = [...requests.values()], done = all.filter((one) => one.state !== "open");
  const input = sum(done, (one) => one.input), cached = sum(done, (one) => one.cached);
  const facts = [
    ["Requests", number(all.length)],
    ["Open now", number(all.length - done.length)],
    ["Failed", number(done.filter(failed).length)],
    ["Input tokens", number(input)],
    ["of it cached", input ? Math.round(100 * cached / input) + " %" : "–"],
    ["Output tokens", number(sum(done, (one) => one.output))],
    ["of it reasoning", number(sum(done, (one) => one.reasoning))],
    ["Cost", money(sum(done, (one) => one.cost))],
  ];
  $("tiles").replaceChildren(...facts.map(([name, value]) => {
    const tile = el("div");
    tile.append(el("dt", name), el("dd", value));
    return tile;
  }));
}
const failed = (one) => one.state === "refused" || one.state === "broken";

function charts() {
  const groups = new Map();
  for (const one of requests.values()) {
    if (one.state === "open") continue;
    const name = by === "model" ? one.provider + "/" + one.model : one.client || one.speaks;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(one);
  }
  const rows = [...groups].sort((a, b) => b[1].length - a[1].length).slice(0, 8);
  $("charts").hidden = !rows.length;
  $("charts").replaceChildren(
    chart("Tokens", rows, (list) => {
      const input = sum(list, (one) => one.input), cached = sum(list, (one) => one.cached);
      const output = sum(list, (one) => one.output), reasoning = sum(list, (one) => one.reasoning);
      return {parts: {input: input - cached, cached, reasoning, answer: Math.max(output - reasoning, 0)}, text: number(input + output)};
    }, ["input", "cached", "reasoning", "answer"]),
    chart("Cost", rows, (list) => {
      const known = list.filter((one) => one.cost != null), cost = sum(known, (one) => one.cost);
      return {parts: {answer: cost}, text: known.length ? money(cost) : "unknown"};
    }),
    chart("Time to the first event, median and 95 %", rows, (list) => {
      const half = quantile(list.map((one) => one.first), .5), most = quantile(list.map((one) => one.first), .95);
      return {parts: {answer: half || 0, input: Math.max((most || 0) - (half || 0), 0)}, text: half == null ? "unknown" : seconds(half) + " · " + seconds(most)};
    }),
  );
}
function chart(title, rows, read, key) {
  const figure = el("figure");
  figure.append(el("figcaption", title));
  const values = rows.map(([name, list]) => [name, read(list)]);
  const most = Math.max(...values.map(([, value]) => sum(Object.values(value.parts), (n) => n)), 1e-9);
  for (const [name, value] of values) {
    const row = el("div", undefined, "row"), bar = el("div", undefined, "bar"), label = el("span", name, "name");
    label.title = name;
    for (const [part, size] of Object.entries(value.parts)) {
      const piece = el("span", undefined, "of-" + part);
      piece.style.width = 100 * size / most + "%";
      piece.title = part + ": " + size;
      bar.append(piece);
    }
    row.append(label, bar, el("span", value.text, "value"));
    figure.append(row);
  }
  if (key) {
    const legend = el("div", undefined, "key");
    for (const part of key) {
      const item = el("span");
      item.append(el("i", undefined, "of-" + part), part);
      legend.append(item);
    }
    figure.append(legend);
  }
  return figure;
}
for (const button of document.querySelectorAll("[data-by]"))
  button.addEventListener("click", () => {
    by = button.dataset.by;
    for (const other of document.querySelectorAll("[data-by]"))
      other.setAttribute("aria-pressed", String(other === button));
    charts();
  });

function list() {
  const visible = [...requests.values()].filter((one) => !found || found.has(one.id)).reverse().slice(0, 200);
  $("none").hidden = visible.length > 0;
  if (found && !visible.length) $("none").textContent = "Nothing found among the requests that are still kept.";
  const focused = document.activeElement && document.activeElement.dataset.id;
  $("requests").replaceChildren(...visible.map(item));
  if (focused) document.querySelector(`#requests [data-id="${CSS.escape(focused)}"]`)?.focus();
}
function item(one) {
  const line = el("li"), button = el("button"), what = el("div", undefined, "what");
  button.type = "button";
  button.dataset.id = one.id;
  button.setAttribute("aria-current", String(one.id === chosen));
  what.append(el("span", one.provider + "/" + one.model), el("span", new Date(one.at * 1000).toLocaleTimeString(), "quiet"));
  const facts = [one.client, one.speaks + (one.speaks === one.upstream ? "" : " → " + one.upstream)];
  if (one.state === "open") facts.push("open");
  else facts.push(seconds(one.total));
  if (one.input != null) facts.push(number(one.input) + " in");
  if (one.output != null) facts.push(number(one.output) + " out");
  if (one.reasoning) facts.push(number(one.reasoning) + " reasoning");
  const under = el("div", facts.filter(Boolean).join(" · "), "facts");
  if (failed(one)) under.append(" ", el("span", one.state + (one.status === 200 ? "" : " " + one.status), "bad"));
  if (one.state === "left") under.append(" · client left");
  button.append(what, under);
  button.addEventListener("click", () => choose(one.id, true));
  line.append(button);
  return line;
}

async function choose(id, move) {
  chosen = id;
  const response = await ask("watch/request?id=" + encodeURIComponent(id));
  if (id !== chosen) return;
  if (response.ok) detail(await response.json());
  else $("detail").replaceChildren(el("p", "The content of this request is no longer kept.", "quiet"));
  redraw();
  if (move && matchMedia("(max-width:52rem)").matches) $("detail").scrollIntoView();
}
function detail(data) {
  const one = data.request, opened = [...document.querySelectorAll("#detail details[open]")].map((d) => d.dataset.name);
  const facts = [one.speaks + " client asked for " + (one.asked || "no model"), "answered by " + one.provider + "/" + one.model + " (" + one.upstream + ")"];
  if (one.cost != null) facts.push(money(one.cost));
  if (one.first != null) facts.push("first event after " + seconds(one.first));
  if (one.total != null) facts.push("ended after " + seconds(one.total));
  const parts = [el("h2", one.provider + "/" + one.model), el("p", facts.join(" · "), "quiet")];
  if (one.error) parts.push(el("p", one.error, "bad"));
  if (data.notes.length) {
    const notes = el("ul", undefined, "notes");
    for (const note of data.notes) notes.append(el("li", note.text, note.warning ? "bad" : ""));
    parts.push(el("h3", "Changed on the way"), notes);
  }
  shown = el("div");
  parts.push(el("h3", one.state === "open" ? "Answer, live" : "Answer"), shown);
  const names = {client: "As the client sent it", neutral: "As mull read it, with what was put back", upstream: "As it went upstream"};
  for (const [name, title] of Object.entries(names)) {
    const fold = el("details");
    fold.dataset.name = name;
    fold.open = opened.includes(name);
    fold.append(el("summary", title), el("pre", JSON.stringify(data.road[name], null, 2)));
    parts.push(fold);
  }
  $("detail").replaceChildren(...parts);
  for (const [kind, text] of data.content) grow(kind, text);
}
function grow(kind, text) {
  if (!shown) return;
  const last = shown.lastElementChild;
  if (last && last.dataset.kind === kind) { last.firstElementChild.append(text); return; }
  const block = el("div", undefined, "said " + kind);
  block.dataset.kind = kind;
  block.append(el("pre", text.replace(/^\n+/, "")));
  shown.append(block);
}

let waiting = null;
$("search").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const words = $("search").value.trim();
    found = words ? new Set(await (await ask("watch/search?q=" + encodeURIComponent(words))).json()) : null;
    redraw();
  }, 150);
});
run();
