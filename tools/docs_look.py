"""The style sheet and the script of the documentation site.

The script only adds: without it every page can be read, the menu is open, and the theme is the
reader's own.
"""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

_DARK = """
--text:#d8dae2;--faint:#9a9fb0;--page:#16171d;--raised:#1f2129;--line:#33363f;--link:#8ab4f8;
--keyword:#c4a7f5;--string:#a5d6a7;--number:#f2b880;--comment:#8b90a0;--removed:#f28b82;
color-scheme:dark
"""

STYLE = f"""
:root{{
--text:#23252c;--faint:#5f6472;--page:#fff;--raised:#f5f6f8;--line:#dfe1e7;--link:#1a56c4;
--keyword:#7a3eb1;--string:#23713a;--number:#a04a00;--comment:#687080;--removed:#b3261e;
color-scheme:light}}
@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{_DARK}}}}}
:root[data-theme=dark]{{{_DARK}}}
*{{box-sizing:border-box}}
html{{scroll-padding-top:4.5rem}}
body{{margin:0;font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
color:var(--text);background:var(--page);overflow-wrap:break-word}}
a{{color:var(--link);text-decoration:none}}
a:hover{{text-decoration:underline}}
:focus-visible{{outline:2px solid var(--link);outline-offset:2px}}
.skip{{position:absolute;left:-99rem}}
.skip:focus{{left:1rem;top:1rem;z-index:3;background:var(--page);padding:.5rem}}
header{{position:sticky;top:0;z-index:2;display:flex;gap:.75rem;align-items:center;
padding:.6rem 1.25rem;background:var(--page);border-bottom:1px solid var(--line)}}
.home{{font-weight:700;font-size:1.2rem;color:var(--text)}}
header small{{color:var(--faint);margin-right:auto}}
#search,#theme{{font:inherit;color:inherit;background:var(--raised);border:1px solid var(--line);
border-radius:6px;padding:.3rem .7rem;min-width:0}}
#search{{width:18rem}}
#theme{{cursor:pointer}}
#found{{position:fixed;z-index:2;top:3.6rem;right:1.25rem;width:min(38rem,calc(100vw - 2.5rem));
max-height:75vh;overflow:auto;margin:0;padding:.4rem;list-style:none;background:var(--page);
border:1px solid var(--line);border-radius:8px;box-shadow:0 8px 30px #0004}}
#found a{{display:block;padding:.5rem .7rem;border-radius:6px;color:var(--text)}}
#found a:hover,#found a:focus,#found a.chosen{{background:var(--raised);text-decoration:none}}
#found small{{display:block;color:var(--faint)}}
#found p{{margin:.5rem .7rem}}
mark{{background:none;color:var(--link);font-weight:600}}
.columns{{display:grid;grid-template-columns:15rem minmax(0,50rem);gap:3rem;
max-width:74rem;margin:0 auto;padding:1.5rem 1.25rem 4rem}}
.menu summary{{display:none}}
nav{{position:sticky;top:4.5rem;max-height:calc(100vh - 5.5rem);overflow:auto;font-size:.92rem}}
nav h2{{font-size:.75rem;text-transform:uppercase;letter-spacing:.06em;color:var(--faint);
margin:1.1rem 0 .3rem;border:0;padding:0}}
nav ul{{list-style:none;margin:0;padding:0}}
nav a{{display:block;padding:.14rem .5rem;border-radius:5px;color:var(--text)}}
nav a[aria-current]{{background:var(--raised);font-weight:600}}
h1{{font-size:2rem;line-height:1.2;margin:.2rem 0 1rem}}
h2{{font-size:1.4rem;margin:2.4rem 0 .8rem;padding-bottom:.25rem;
border-bottom:1px solid var(--line)}}
h3{{font-size:1.12rem;margin:1.8rem 0 .5rem}}
.anchor{{margin-left:.4rem;color:var(--faint);opacity:0;font-weight:400}}
:is(h2,h3,h4,h5,h6):hover .anchor,.anchor:focus{{opacity:1}}
code{{font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}}
:not(pre)>code{{background:var(--raised);border-radius:4px;padding:.1em .3em}}
pre{{background:var(--raised);border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;
overflow:auto;position:relative}}
pre code{{white-space:pre}}
.copy{{position:absolute;top:.4rem;right:.4rem;font:.75rem system-ui,sans-serif;color:var(--faint);
background:var(--page);border:1px solid var(--line);border-radius:5px;cursor:pointer;opacity:0}}
pre:hover .copy,.copy:focus{{opacity:1}}
.wide{{overflow:auto;margin:1rem 0}}
table{{border-collapse:collapse;font-size:.94rem;min-width:60%}}
th,td{{text-align:left;vertical-align:top;padding:.4rem .7rem;border-bottom:1px solid var(--line);
overflow-wrap:normal}}
thead th:empty{{padding:0}}
.right{{text-align:right}}.middle{{text-align:center}}
img{{max-width:100%;height:auto;border-radius:8px}}
blockquote{{margin:1rem 0;padding-left:1rem;border-left:3px solid var(--line);color:var(--faint)}}
li{{margin:.2rem 0}}
.keyword{{color:var(--keyword)}}.string,.added{{color:var(--string)}}.number{{color:var(--number)}}
.comment,.note{{color:var(--comment)}}.removed{{color:var(--removed)}}
.neighbours{{display:flex;justify-content:space-between;gap:1rem;margin-top:3rem;padding-top:1rem;
border-top:1px solid var(--line)}}
.neighbours [rel=next]{{margin-left:auto;text-align:right}}
img.dark{{display:none}}
@media(prefers-color-scheme:dark){{
:root:not([data-theme=light]) img.dark{{display:inline}}
:root:not([data-theme=light]) img.light{{display:none}}}}
:root[data-theme=dark] img.dark{{display:inline}}
:root[data-theme=dark] img.light{{display:none}}
@media(max-width:56rem){{
.columns{{display:block;padding-top:1rem}}
.menu summary{{display:block;padding:.5rem .8rem;margin-bottom:1rem;cursor:pointer;
background:var(--raised);border:1px solid var(--line);border-radius:6px}}
nav{{position:static;max-height:none;padding-bottom:1rem}}
nav a{{padding:.4rem .5rem}}
#search{{flex:1 1 8rem;width:auto}}
h1{{font-size:1.6rem}}}}
@media print{{header,.menu,.neighbours,.copy,.anchor{{display:none}}.columns{{display:block}}}}
""".strip()

SCRIPT = r"""
"use strict";
(() => {
const root = document.documentElement, wide = matchMedia("(min-width: 56.01rem)");
const remember = (value) => { try { localStorage.mullTheme = value } catch {} };
try { if (localStorage.mullTheme) root.dataset.theme = localStorage.mullTheme } catch {}
const isDark = () => root.dataset.theme
  ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme").onclick = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
  };
  const menu = document.querySelector(".menu");
  const fit = () => { menu.open = wide.matches };
  wide.addEventListener("change", fit);
  fit();
  const here = menu.querySelector("[aria-current]");
  if (here && wide.matches) here.parentElement.scrollIntoView({block: "nearest"});
  if (navigator.clipboard) document.querySelectorAll("main pre").forEach(addCopyButton);
  search();
});

function addCopyButton(block) {
  const button = document.createElement("button");
  button.className = "copy";
  button.textContent = "Copy";
  button.onclick = async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy" }, 1500);
  };
  block.append(button);
}

function search() {
  const box = document.getElementById("search"), list = document.getElementById("found");
  let chosen = -1;
  const load = () => {
    if (window.searchIndex || document.getElementById("index")) return;
    const script = document.createElement("script");
    script.id = "index";
    script.src = root.dataset.top + "/search.js";
    script.onload = show;
    document.head.append(script);
  };
  const show = () => {
    const words = fold(box.value).split(/\s+/).filter(Boolean);
    chosen = -1;
    list.hidden = !words.length || !window.searchIndex;
    if (!list.hidden) list.replaceChildren(...results(words));
  };
  const choose = (step) => {
    const links = list.querySelectorAll("a");
    if (!links.length) return;
    links[chosen]?.classList.remove("chosen");
    chosen = (chosen + step + links.length) % links.length;
    links[chosen].classList.add("chosen");
    links[chosen].scrollIntoView({block: "nearest"});
  };
  box.onfocus = () => { load(); show() };
  box.oninput = () => { load(); show() };
  box.onkeydown = (event) => {
    if (event.key === "ArrowDown") choose(1);
    else if (event.key === "ArrowUp") choose(-1);
    else if (event.key === "Enter")
      (list.querySelector(".chosen") || list.querySelector("a"))?.click();
    else if (event.key === "Escape") { box.value = ""; show(); box.blur(); return }
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    box.focus();
  });
  addEventListener("click", (event) => {
    if (event.target !== box && (!list.contains(event.target) || event.target.closest("a")))
      list.hidden = true;
  });
}

function fold(text) { return text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "") }

function results(words) {
  const found = [];
  for (const [address, page, heading, text] of window.searchIndex) {
    const parts = [fold(heading), fold(page), fold(text)];
    let score = 0;
    const hasAll = words.every((word) => {
      const best = Math.max(...parts.map((part, at) => worth(part, word, [12, 6, 1][at])));
      score += best;
      return best > 0;
    });
    if (hasAll) found.push({score, address, page, heading, text});
  }
  found.sort((a, b) => b.score - a.score);
  const items = found.slice(0, 20).map((one) => item(one, words));
  return items.length ? items : [said("Nothing found.")];
}

function worth(part, word, weight) {
  const at = part.indexOf(word);
  if (at < 0) return 0;
  if (part === word) return 3 * weight;
  return at === 0 || /\W/.test(part[at - 1]) ? 2 * weight : weight;
}

function item({address, page, heading, text}, words) {
  const row = document.createElement("li"), link = document.createElement("a");
  const where = document.createElement("small"), excerpt = document.createElement("small");
  link.href = root.dataset.top + "/" + address;
  link.append(...marked(heading, words));
  where.textContent = page === heading ? "" : page;
  const at = Math.max(0, Math.min(...words.map((w) => place(text, w))) - 50);
  excerpt.append(...marked((at ? "… " : "") + text.slice(at, at + 160) + " …", words));
  link.append(where, excerpt);
  row.append(link);
  return row;
}

function place(text, word) { const at = fold(text).indexOf(word); return at < 0 ? 0 : at }

function marked(text, words) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`, "i")).map((part, at) => {
    if (at % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}

function said(text) {
  const row = document.createElement("li"), line = document.createElement("p");
  line.textContent = text;
  row.append(line);
  return row;
}
})();
""".lstrip()
