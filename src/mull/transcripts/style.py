"""How an exported page looks: colours by name for light and dark, and one style sheet.

Text keeps a contrast of at least 4.5:1 on every ground it stands on, charts 3:1; the tests
compute it from these very values.
"""

from __future__ import annotations

__all__ = ["CHARTS", "COLOURS", "DARK", "LIGHT", "SCRIPT", "STYLE"]

LIGHT = {
    "paper": "#fbfaf7",
    "ink": "#23252b",
    "quiet": "#5d6270",
    "line": "#e2dfd8",
    "link": "#3a5bb0",
    "you": "#eaf0f7",
    "you-edge": "#5c80ad",
    "thought": "#f1edf8",
    "thought-ink": "#4a4360",
    "thought-quiet": "#655c80",
    "thought-edge": "#8b76c9",
    "code": "#f2f0ea",
    "keyword": "#763e9d",
    "string": "#2e6b34",
    "number": "#8a4b0f",
    "tool-edge": "#b9b3a4",
    "bad": "#a8322a",
    "reasoning": "#8b76c9",
    "answer": "#2b8a78",
    "input": "#7d8ea8",
    "mixed": "#6f7f8f",
}
DARK = {
    "paper": "#16171b",
    "ink": "#e4e2dc",
    "quiet": "#9b9fab",
    "line": "#30323a",
    "link": "#93b4f5",
    "you": "#1d2530",
    "you-edge": "#6f97c9",
    "thought": "#231f2f",
    "thought-ink": "#cfc7e2",
    "thought-quiet": "#a59bc0",
    "thought-edge": "#8f7ccd",
    "code": "#1f2126",
    "keyword": "#bea5e4",
    "string": "#9ec79b",
    "number": "#deb88e",
    "tool-edge": "#565a66",
    "bad": "#f0857b",
    "reasoning": "#9a86dc",
    "answer": "#43ab96",
    "input": "#7488a6",
    "mixed": "#8494a5",
}


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


COLOURS = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
"""
CHARTS = """
svg text{fill:var(--quiet);font-size:11px;font-variant-numeric:tabular-nums}
svg .middle{text-anchor:middle}
svg .axis{stroke:var(--line);stroke-width:1}
"""
STYLE = f"""{COLOURS}{CHARTS}
*{{box-sizing:border-box}}
html{{scroll-behavior:smooth;-webkit-text-size-adjust:100%}}
body{{margin:0;background:var(--paper);color:var(--ink);
  font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}}
a{{color:var(--link);text-underline-offset:.15em}}
:focus-visible{{outline:2px solid var(--link);outline-offset:2px;border-radius:4px}}
header,main,footer{{max-width:48rem;margin:0 auto;padding:0 1.25rem}}
header{{padding-top:3.5rem}}
h1{{font-size:clamp(1.6rem,4.5vw,2.3rem);line-height:1.2;letter-spacing:-.02em;margin:0 0 .5rem;
  overflow-wrap:anywhere;text-wrap:balance}}
.facts{{color:var(--quiet);font-size:.9rem;margin:0 0 1.75rem;overflow-wrap:anywhere}}
.tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.2rem,1fr));gap:1px;margin:0;
  background:var(--line);border:1px solid var(--line);border-radius:12px;overflow:hidden}}
.tiles div{{background:var(--paper);padding:.8rem .9rem}}
.tiles dt{{color:var(--quiet);font-size:.8rem}}
.tiles dd{{margin:0;font-size:1.1rem;white-space:nowrap;font-weight:600;letter-spacing:-.01em;
  font-variant-numeric:tabular-nums}}
.tiles small{{display:block;white-space:normal;line-height:1.35;color:var(--quiet);
  font-size:.8rem;font-weight:400;letter-spacing:0}}
.charts{{display:grid;grid-template-columns:repeat(2,1fr);gap:1.75rem 2rem;margin:2rem 0 0}}
figure{{margin:0;min-width:0}}
figure.tokens{{grid-column:1/-1}}
figcaption{{font-size:.9rem;font-weight:600;margin-bottom:.4rem}}
figcaption span{{color:var(--quiet);font-weight:400}}
svg{{display:block;width:100%;overflow:visible}}
svg a:hover rect{{opacity:.75}}
.reasoning{{fill:var(--reasoning);background:var(--reasoning)}}
.answer{{fill:var(--answer);background:var(--answer)}}
.input{{fill:var(--input);background:var(--input)}}
.mixed{{fill:var(--mixed);background:var(--mixed)}}
.cost{{fill:var(--you-edge)}}
rect.unknown{{fill:none;stroke:var(--quiet);stroke-dasharray:2 2}}
.context,.gap{{fill:none;stroke:var(--you-edge);stroke-width:2;vector-effect:non-scaling-stroke;
  stroke-linejoin:round}}
.gap{{stroke-width:1;stroke-dasharray:3 3}}
.below{{fill:var(--you);stroke:none}}
circle{{fill:var(--you-edge)}}
.legend{{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:0;margin:.5rem 0 0;
  font-size:.85rem;color:var(--quiet)}}
.legend i{{display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.45em}}
.unsaid{{color:var(--quiet);font-size:.9rem;margin:0}}
details.numbers,details.system{{margin-top:1.25rem;font-size:.9rem}}
summary{{cursor:pointer}}
details.numbers>summary,details.system>summary{{color:var(--quiet);width:max-content;max-width:100%}}
.bar{{position:sticky;top:0;z-index:1;display:flex;justify-content:flex-end;height:0}}
button{{font:inherit;font-size:.85rem;color:var(--thought-ink);background:var(--thought);
  box-shadow:0 0 0 4px var(--paper);
  border:1px solid var(--thought-edge);border-radius:999px;padding:.3rem .95rem;cursor:pointer;
  position:absolute;top:.75rem;right:0;white-space:nowrap}}
section.turn{{margin-top:2.75rem;scroll-margin-top:1rem}}
.bar+section.turn{{margin-top:4rem}}
.turn>h2{{display:flex;flex-wrap:wrap;align-items:baseline;gap:0 1em;margin:0 0 1rem;
  padding-top:.7rem;border-top:1px solid var(--line);font-size:.85rem;font-weight:600;
  color:var(--quiet)}}
.turn>h2 a{{color:inherit;text-decoration:none}}
.turn>h2 span{{font-weight:400;font-variant-numeric:tabular-nums}}
article{{margin:0 0 1.25rem}}
article>h3{{font-size:.85rem;font-weight:600;margin:0 0 .35rem;color:var(--quiet);
  overflow-wrap:anywhere}}
article.you{{background:var(--you);border-left:3px solid var(--you-edge);
  border-radius:4px 12px 12px 4px;padding:.8rem 1.1rem}}
article.you>h3{{color:var(--ink)}}
article.back{{border-left:3px dashed var(--line);padding-left:1rem}}
article.back>h3::after{{content:" · withdrawn"}}
.said{{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}}
p{{margin:.65em 0;white-space:pre-wrap;overflow-wrap:anywhere}}
li{{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2em 0}}
li>*{{white-space:normal}}
li>span,li>p{{white-space:pre-wrap}}
ul,ol{{padding-left:1.6em;margin:.65em 0}}
li ul,li ol{{margin:.2em 0}}
.text>:first-child,.thought>.text>:first-child{{margin-top:0}}
.text>:last-child{{margin-bottom:0}}
.text h3,.text h4,.text h5,.text h6{{line-height:1.3;margin:1.4em 0 .5em;letter-spacing:-.01em}}
.text h3{{font-size:1.25rem}}.text h4{{font-size:1.1rem}}.text h5,.text h6{{font-size:1rem}}
blockquote{{margin:.8em 0;padding:.1em 0 .1em 1em;border-left:3px solid var(--line);
  color:var(--quiet)}}
hr{{border:0;border-top:1px solid var(--line);margin:1.5em 0}}
code,pre{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
  font-size:.86em}}
code{{background:var(--code);border-radius:4px;padding:.12em .35em;overflow-wrap:anywhere;
  color:var(--ink)}}
pre{{background:var(--code);color:var(--ink);border-radius:8px;padding:.8rem 1rem;margin:.8em 0;
  overflow-x:auto;line-height:1.5;position:relative;tab-size:4}}
pre code{{background:none;padding:0;font-size:inherit;overflow-wrap:normal}}
pre .keyword{{color:var(--keyword)}}
pre .number{{color:var(--number)}}
pre .string,pre .added{{color:var(--string)}}
pre .removed{{color:var(--bad)}}
pre .comment,pre .note{{color:var(--quiet)}}
pre .comment{{font-style:italic}}
pre[data-language]{{padding-top:1.9rem}}
pre[data-language]::before{{content:attr(data-language);position:absolute;top:.35rem;left:1rem;
  color:var(--quiet);font-size:.85em}}
.wide{{overflow-x:auto;margin:.8em 0}}
table{{border-collapse:collapse;font-size:.92em;font-variant-numeric:tabular-nums}}
th,td{{text-align:left;padding:.35em .9em .35em 0;border-bottom:1px solid var(--line);
  vertical-align:top}}
th{{font-weight:600;white-space:nowrap}}
.right{{text-align:right}}.middle{{text-align:center}}
.numbers th,.numbers td{{text-align:right;white-space:nowrap;padding:.35em 0 .35em 1.1em}}
.numbers th:first-child,.numbers td:first-child{{text-align:left;padding-left:0}}
.thought{{background:var(--thought);color:var(--thought-ink);border-left:3px solid
  var(--thought-edge);border-radius:4px 12px 12px 4px;margin:.9rem 0;font-size:.95rem}}
.thought>summary{{display:flex;flex-wrap:wrap;gap:0 .8em;align-items:baseline;padding:.6rem 1.1rem;
  list-style:none;color:var(--thought-quiet)}}
.thought>summary::-webkit-details-marker{{display:none}}
.thought>summary::before{{content:"";flex:none;width:.45em;height:.45em;border:solid currentColor;
  border-width:0 2px 2px 0;transform:rotate(-45deg) translate(-.1em,-.1em)}}
.thought[open]>summary::before{{transform:rotate(45deg) translate(-.1em,-.1em)}}
.thought>summary b{{font-weight:600;flex:none;max-width:100%}}
.thought>summary i{{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;flex:1 1 9rem}}
.thought[open]>summary i{{display:none}}
.thought>.text{{padding:0 1.1rem .9rem;font-style:italic}}
.thought .text pre,.thought .text code{{font-style:normal}}
p.thought{{padding:.6rem 1.1rem;color:var(--thought-quiet);font-style:italic}}
.tool{{border:1px solid var(--line);border-left:3px solid var(--tool-edge);
  border-radius:4px 12px 12px 4px;padding:.65rem 1.1rem;margin:.9rem 0;font-size:.92rem}}
.tool>p:first-child{{margin:0}}
.tool dl{{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .9rem;margin:.4rem 0 0}}
.tool dt{{color:var(--quiet)}}
.tool dd{{margin:0;min-width:0;overflow-wrap:anywhere}}
.tool dd pre,.tool details pre{{margin:.2rem 0}}
.tool pre{{max-height:28rem;overflow:auto;margin:.5rem 0 0}}
.tool>details,.tool>.result{{margin-top:.5rem}}
.tool summary,.tool .label{{color:var(--quiet);margin:0}}
.bad{{color:var(--bad)!important}}
.mark{{border-left:3px solid var(--line);color:var(--quiet);padding:.1rem 0 .1rem 1rem;
  margin:1rem 0;font-size:.92rem}}
.mark p:first-child{{margin-top:0}}
.mark .text{{color:var(--ink)}}
img{{max-width:100%;height:auto;border-radius:8px;display:block;margin:.6rem 0}}
footer{{color:var(--quiet);font-size:.85rem;padding-top:2.5rem;padding-bottom:3rem}}
@media (max-width:34rem){{
  header{{padding-top:2rem}}
  header,main,footer{{padding-left:1rem;padding-right:1rem}}
  .charts{{grid-template-columns:1fr}}
  .tiles{{grid-template-columns:repeat(2,1fr)}}
  .tool dl{{grid-template-columns:1fr}}
  .tool dt{{margin-top:.25rem}}
  .tiles div:last-child:nth-child(odd){{grid-column:1/-1}}
}}
@media print{{
  :root{{{_variables(LIGHT)}--paper:#fff}}
  body{{font-size:10.5pt}}
  .bar{{display:none}}
  details::details-content{{content-visibility:visible!important;block-size:auto!important}}
  .tool pre{{max-height:none}}
  pre{{white-space:pre-wrap}}
  article.you,figure,tr,h2{{break-inside:avoid}}
  h2,h3,summary{{break-after:avoid}}
  *{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
}}
@media (prefers-reduced-motion:reduce){{html{{scroll-behavior:auto}}}}
""".strip()

SCRIPT = """
(()=>{
const button=document.querySelector(".bar button"),
thoughts=[...document.querySelectorAll("details.thought")],
all=[...document.querySelectorAll("details")];
let before=[];
const say=()=>{button.textContent=
(thoughts.every(one=>one.open)?"Close":"Open")+" all thoughts"};
if(button&&thoughts.length){
button.hidden=false;
button.onclick=()=>{const open=!thoughts.every(one=>one.open);
thoughts.forEach(one=>{one.open=open});say()};
thoughts.forEach(one=>one.addEventListener("toggle",say));say()}
addEventListener("beforeprint",()=>{before=all.map(one=>one.open);
all.forEach(one=>{one.open=true})});
addEventListener("afterprint",()=>{all.forEach((one,at)=>{one.open=before[at]})})
})()
""".strip()
"""Opens and closes all thoughts, and opens everything for the printer; the page reads without."""
