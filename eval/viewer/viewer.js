"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const total = data.pieces.length;
const refreshes = data.refreshes;
const KINDS = ["prompt", "zoomed", "summary", "window", "absent", "future"];

// Segments from the edges: the prompt, then paragraph and summary in turn, then what is open.
const segments = [{ begin: 0, end: data.prompt_tokens, kind: "prompt", index: -1 }];
for (let i = 0; 2 * i + 2 < data.edges.length; i++) {
  segments.push({ begin: data.edges[2 * i], end: data.edges[2 * i + 1], kind: "paragraph", index: i });
  segments.push({ begin: data.edges[2 * i + 1], end: data.edges[2 * i + 2], kind: "summary", index: i });
}
segments.push({ begin: segments.at(-1).end, end: total, kind: "paragraph", index: 1e9 });

// Spans of text: cut at segment edges, at refreshes, and where a window begins. Few, so that long samples stay smooth.
const cuts = new Set([0, total]);
for (const segment of segments) cuts.add(segment.begin).add(segment.end);
for (const refresh of refreshes) cuts.add(refresh.position).add(Math.max(0, refresh.position - data.window));
const places = [...cuts].filter((cut) => cut <= total).sort((a, b) => a - b);
const spans = [];
let segmentNumber = 0;
for (let i = 0; i + 1 < places.length; i++) {
  while (segments[segmentNumber].end <= places[i] && segmentNumber + 1 < segments.length) segmentNumber++;
  spans.push({ begin: places[i], end: places[i + 1], segment: segments[segmentNumber] });
}

function state(span, refresh, zoomed, shown) {
  const next = refreshes[refresh.number + 1];
  if (span.begin >= (next ? next.position : total)) return "future";
  if (span.segment.kind === "prompt") return "prompt";
  if (span.segment.kind === "paragraph" && zoomed.has(span.segment.index)) return "zoomed";
  if (span.segment.kind === "summary" && shown.has(span.segment.index)) return "summary";
  return span.begin >= refresh.position - data.window ? "window" : "absent";
}

function states(number) {
  const refresh = { ...refreshes[number], number };
  const zoomed = new Set(refresh.zoomed);
  const shown = new Set(refresh.shown);
  return spans.map((span) => state(span, refresh, zoomed, shown));
}

const nodes = spans.map((span) => {
  const node = document.createElement("span");
  node.textContent = data.pieces.slice(span.begin, span.end).join("");
  if (span.segment.kind === "summary") node.title = `summary ${span.segment.index}`;
  else if (span.segment.index >= 0 && span.segment.index < 1e9) node.title = `paragraph ${span.segment.index}`;
  return element("text").appendChild(node);
});

let palette = {};
const readPalette = () => {
  const probe = document.body.appendChild(document.createElement("i"));
  for (const kind of [...KINDS, "ink"]) {
    probe.style.color = `var(--${kind})`;
    palette[kind] = getComputedStyle(probe).color;
  }
  probe.remove();
};

// Neighbours of one kind are one rectangle: a row has few runs, however many spans the text is cut into.
function drawStrip(context, kinds, top, height, width) {
  for (let first = 0, i = 1; i <= spans.length; i++) {
    if (i < spans.length && kinds[i] === kinds[first]) continue;
    context.fillStyle = palette[kinds[first]];
    const left = Math.floor((spans[first].begin / total) * width);
    context.fillRect(left, top, Math.ceil((spans[i - 1].end / total) * width) - left, height);
    first = i;
  }
}

// At most 400 refreshes are drawn, evenly spaced, so that a long sample's map is as quick and as tall as a short one's.
let mapHeight = 1;
function drawMap() {
  const canvas = element("map");
  const rows = Math.min(400, refreshes.length);
  const height = Math.max(2, Math.min(14, Math.floor(320 / Math.max(1, rows))));
  canvas.width = 800;
  canvas.height = mapHeight = Math.max(1, height * rows);
  const context = canvas.getContext("2d");
  for (let row = 0; row < rows; row++) {
    drawStrip(context, states(Math.floor((row * refreshes.length) / rows)), row * height, height, canvas.width);
  }
}

// The text scrolls in its own pane, so that slider and votes stay in sight.
function center(node) {
  element("text").scrollTop = node.offsetTop - element("text").clientHeight / 2;
}

let current = 0;
let mapImage = null;
let here = null;
function show(number, scroll = true) {
  if (!refreshes.length) {
    element("place").textContent = "this method never refreshes";
    return;
  }
  current = Math.max(0, Math.min(refreshes.length - 1, number));
  const refresh = refreshes[current];
  const kinds = states(current);
  here?.classList.remove("here");
  nodes.forEach((node, i) => {
    if (node.className !== kinds[i]) node.className = kinds[i];
  });
  here = nodes[spans.findIndex((span) => span.end === refresh.position)];
  here?.classList.add("here");
  element("slider").value = current;
  const forced = refresh.forced ? ", forced" : "";
  element("place").textContent =
    `refresh ${current + 1} of ${refreshes.length} at token ${refresh.position}: ${refresh.active} active${forced}`;
  element("link").href = `#refresh=${current + 1}`;
  drawVotes(refresh);
  const line = element("line");
  line.width = 800;
  const context = line.getContext("2d");
  drawStrip(context, kinds, 0, line.height, line.width);
  context.fillStyle = palette.ink;
  context.fillRect((refresh.position / total) * line.width - 1, 0, 3, line.height);
  const map = element("map").getContext("2d");
  if (mapImage) map.putImageData(mapImage, 0, 0);
  else mapImage = map.getImageData(0, 0, element("map").width, mapHeight);
  map.strokeStyle = palette.ink;
  map.lineWidth = 2;
  const thickness = Math.max(2, mapHeight / refreshes.length);
  map.strokeRect(0, (current * mapHeight) / refreshes.length, element("map").width, thickness);
  if (scroll && here) center(here);
}

function drawVotes(refresh) {
  const votes = refresh.votes ?? [];
  const most = Math.max(1, ...votes);
  const rows = votes.map((vote, i) => {
    const row = document.createElement("div");
    row.className = refresh.zoomed.includes(i) ? "zoomed" : refresh.shown.includes(i) ? "summary" : "absent";
    const bar = document.createElement("b");
    bar.style.width = `${(100 * vote) / most}%`;
    const label = document.createElement("span");
    label.textContent = i;
    const count = document.createElement("span");
    count.textContent = Number.isInteger(vote) ? vote : vote.toFixed(1);
    row.append(label, bar, count);
    return row;
  });
  element("votes").replaceChildren(...rows);
  if (!votes.length) element("votes").textContent = "no finished summary, or no votes";
}

let hit = -1;
function find(text) {
  for (const marked of element("text").querySelectorAll("mark")) marked.replaceWith(marked.textContent);
  nodes.forEach((node) => node.normalize());
  if (!text) return (element("hits").textContent = "");
  const found = nodes.map((node, i) => i).filter((i) => nodes[i].textContent.includes(text));
  if (!found.length) return (element("hits").textContent = "not found");
  hit = found.find((i) => i > hit) ?? found[0];
  const whole = nodes[hit].textContent;
  const at = whole.indexOf(text);
  const marked = document.createElement("mark");
  marked.textContent = text;
  nodes[hit].replaceChildren(whole.slice(0, at), marked, whole.slice(at + text.length));
  element("hits").textContent = `${found.indexOf(hit) + 1} of ${found.length} places`;
  center(marked);
}

function fromHash() {
  const match = location.hash.match(/refresh=(\d+)/);
  return match ? Number(match[1]) - 1 : 0;
}

element("title").textContent = document.title = data.title;
for (const [name, value] of Object.entries(data.facts)) {
  const term = document.createElement("dt");
  term.textContent = name;
  const description = document.createElement("dd");
  description.textContent = value;
  const fact = document.createElement("div");
  fact.append(term, description);
  element("facts").append(fact);
}
element("slider").max = Math.max(0, refreshes.length - 1);
element("slider").addEventListener("input", (event) => show(Number(event.target.value)));
element("previous").addEventListener("click", () => show(current - 1));
element("next").addEventListener("click", () => show(current + 1));
element("map").addEventListener("click", (event) =>
  show(Math.floor((event.offsetY / event.target.clientHeight) * refreshes.length)));
element("search").addEventListener("keydown", (event) => event.key === "Enter" && find(event.target.value));
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT") return;
  if (event.key === "ArrowLeft") show(current - 1);
  if (event.key === "ArrowRight") show(current + 1);
});
window.addEventListener("hashchange", () => show(fromHash()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readPalette();
  mapImage = null;
  drawMap();
  show(current, false);
});
readPalette();
drawMap();
show(fromHash(), location.hash !== "");
