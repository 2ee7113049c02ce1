// Shows the cluster at one moment: live, or at the time of the slider. Texts from the cluster are only ever texts.

const MINUTE = 60e6, SECOND = 1e6;
// ms: between two tries of a live stream that was refused.
const RETRY = 15000;
const LETTERS = { user: "U", build: "B", placeholder: "p" };
const $ = (id) => document.getElementById(id);
const root = document.documentElement;

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

const clock = (us) => new Date(us / 1000).toISOString().slice(11, 19);
const day = (us) => new Date(us / 1000).toISOString().slice(0, 19).replace("T", " ");

function span(us) {
  const seconds = Math.max(0, Math.round(us / SECOND));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// ---- What is shown. at: µs since 1970; null: live.
let at = null;
let state = null;
let isAsking = false;
let isStale = false;
let source = null;

function readAddress() {
  // Not as a form's fields: there, the + of a zone is a space.
  const wanted = /^#at=(.+)$/.exec(location.hash)?.[1].replace(/%3A/gi, ":");
  // Without a zone: UTC.
  const ms = wanted ? Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(wanted) ? wanted : `${wanted}Z`) : NaN;
  return Number.isNaN(ms) ? null : ms * 1000;
}

function keepAddress() {
  history.replaceState(null, "", at === null ? location.pathname : `#at=${new Date(at / 1000).toISOString()}`);
}

function goTo(us, { keepsAddress = true } = {}) {
  at = us === null ? null : Math.round(us);
  if (keepsAddress) keepAddress();
  if (at === null) listen();
  else {
    source?.close();
    source = null;
    ask();
  }
}

// One question at a time: a slider that moves asks for where it is when the last answer has come.
async function ask() {
  if (isAsking) {
    isStale = true;
    return;
  }
  isAsking = true;
  try {
    do {
      isStale = false;
      const answer = await fetch(`api/moment?at=${at}`);
      const found = await answer.json();
      if (at !== null) show(found);
    } while (isStale && at !== null);
  } catch (error) {
    say(`No answer from roost view: ${error.message}`);
  } finally {
    isAsking = false;
  }
}

function listen() {
  source?.close();
  source = new EventSource("api/live");
  source.onmessage = (message) => show(JSON.parse(message.data));
  source.onerror = () => {
    say("No live news: trying again …");
    // A refusal closes it for good.
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => at === null && listen(), RETRY);
  };
}

function say(text) {
  $("status").textContent = text;
}

// ---- Drawing.
function show(found) {
  if (found.error) return say(found.error);
  if (found.empty) return say("Nothing has been recorded yet.");
  state = found;
  $("when").textContent = `${day(state.at)} UTC`;
  const age = Date.now() * 1000 - state.end;
  say(at === null ? (age > 3 * MINUTE ? `The record ended ${span(age)} ago; this is its last state.` : "Live.")
    : "As recorded.");
  $("live").setAttribute("aria-pressed", String(at === null));
  $("notices").replaceChildren(...state.notices.map((text) => {
    const notice = make("div", "notice");
    notice.setAttribute("role", "note");
    notice.append(make("p", "", text));
    return notice;
  }));
  showTime();
  showCounts();
  showPending();
  showChanges();
  showNodes();
  drawArrows();
  root.dataset.shown = String(state.at);
}

function showTime() {
  const length = Number($("span").value) * SECOND || state.end - state.begin;
  // The range ends at the record's end, or has the moment in its middle.
  const last = Math.min(state.end, Math.max(state.at + length / 2, state.begin + length));
  const slider = $("slider");
  if (document.activeElement !== slider || Number(slider.max) === 100) {
    slider.min = Math.floor(Math.max(state.begin, last - length) / SECOND);
    slider.max = Math.ceil(last / SECOND);
  }
  slider.value = Math.round(state.at / SECOND);
  slider.setAttribute("aria-valuetext", `${day(state.at)} UTC`);
  if (document.activeElement !== $("at")) $("at").value = day(state.at).replace(" ", "T");
}

function showCounts() {
  const kinds = [...Object.keys(LETTERS), ...Object.keys(state.counts).filter((kind) => !LETTERS[kind]).sort()];
  const words = kinds.filter((kind) => state.counts[kind]).map((kind) => many(state.counts[kind], kind));
  $("counts").textContent = `${many(state.nodes.length, "node")}: ${words.join(", ") || "no pods"}; ${state.pending_count} pending.`;
  const marks = kinds.map((kind) => legendItem(`pod ${LETTERS[kind] ? kind : ""}`, LETTERS[kind] ?? kind[0], kind));
  marks.push(legendItem("pod pulling", "U", "its image is pulled"), legendItem("pod starting", "U", "starting"));
  marks.push(legendItem("pod fresh", "", "placed in the last minute"));
  for (const [index, chip] of state.chips.entries()) {
    const item = legendItem("chip held", letter(index), `${chip.short} (${many(chip.users, "user")})`);
    item.title = state.images[chip.image];
    marks.push(item);
  }
  if (state.chips.length) marks.push(legendItem("chip missing", "A", "missing"), legendItem("chip pulling", "A", "closed while it is pulled"));
  $("legend").replaceChildren(...marks);
}

const letter = (index) => String.fromCharCode(65 + index);

function legendItem(className, text, about) {
  const item = make("li");
  item.append(make("i", className, text), ` ${about}`);
  return item;
}

function podButton(uid, name) {
  const button = make("button", "", name);
  button.type = "button";
  button.dataset.uid = uid;
  return button;
}

function showPending() {
  $("pending-section").hidden = !state.pending_count;
  $("pending-title").textContent = `${many(state.pending_count, "pod")} without a node`;
  const lines = state.pending.map((pod) => {
    const line = make("li");
    line.append(podButton(pod.uid, pod.name), ` (${pod.kind}) for ${span(state.at - pod.created)}: ${pod.reason || "no failed attempt is recorded"}`);
    return line;
  });
  if (state.pending_count > lines.length) lines.push(make("li", "", `and ${state.pending_count - lines.length} younger ones`));
  $("pending").replaceChildren(...lines);
}

function showChanges() {
  const lines = state.changes.map((change) => {
    const line = make("li");
    line.append(`${clock(change.at)} ${change.kind} ${change.pod_kind} `, podButton(change.uid, change.name));
    if (change.from) line.append(change.kind === "moved" ? `: ${change.from}` : ` on ${change.from}`);
    if (change.to) line.append(` → ${change.to}`);
    if (change.by) line.append(" for ", podButton(change.by_uid, change.by));
    return line;
  });
  const counts = new Map();
  for (const change of state.changes) counts.set(change.kind, (counts.get(change.kind) ?? 0) + 1);
  const words = [...counts].map(([kind, number]) => `${number} ${kind}`).join(", ");
  $("changes-title").textContent = `The last minute: ${words || "nothing was placed, moved or pre-empted"}`;
  $("changes").replaceChildren(...lines);
}

// Node uid -> its box, and what it was drawn from.
const boxes = new Map();

function showNodes() {
  const fresh = new Set(state.changes.filter((change) => change.to).map((change) => change.uid));
  const focused = document.activeElement?.closest?.(".pods") ? document.activeElement.dataset.uid : null;
  const shown = new Set();
  const list = $("nodes");
  let before = null;
  for (const node of state.nodes) {
    shown.add(node.uid);
    const key = JSON.stringify([node, node.pods.filter((pod) => fresh.has(pod.uid)).map((pod) => pod.uid), state.chips]);
    let box = boxes.get(node.uid);
    if (box?.key !== key) {
      const item = nodeBox(node, fresh);
      if (box) box.item.replaceWith(item);
      box = { key, item };
      boxes.set(node.uid, box);
    }
    box.item.querySelector(".age").textContent = node.created > 0 ? span(state.at - node.created) : "";
    const place = before ? before.nextElementSibling : list.firstElementChild;
    if (place !== box.item) list.insertBefore(box.item, place);
    before = box.item;
  }
  for (const [uid, box] of boxes) {
    if (shown.has(uid)) continue;
    box.item.remove();
    boxes.delete(uid);
  }
  if (focused && document.activeElement === document.body) list.querySelector(`[data-uid="${CSS.escape(focused)}"]`)?.focus();
}

const STATES = { "not ready": "not ready", leaving: "leaving", cordoned: "cordoned", unknown: "state not recorded" };

function nodeBox(node, fresh) {
  const item = make("li", `node ${node.state.replace(" ", "-")}`);
  const head = make("h3");
  const name = make("span", "", node.short);
  name.title = node.name;
  head.append(name, make("span", "quiet age"));
  if (STATES[node.state]) head.append(make("span", "mark", STATES[node.state]));
  for (const set of node.attracts) head.append(make("span", "mark", `attracts ${set}`));
  item.append(head, make("p", "", contents(node)));
  if (state.chips.length && node.images !== null) item.append(chips(node));
  const pods = make("div", "pods");
  pods.setAttribute("role", "group");
  pods.setAttribute("aria-label", `Pods on ${node.name}; arrow keys move among them`);
  node.pods.forEach((pod, index) => pods.append(podBox(pod, fresh.has(pod.uid), index === 0)));
  item.append(pods);
  return item;
}

function contents(node) {
  const counts = new Map();
  for (const pod of node.pods) counts.set(pod.kind, (counts.get(pod.kind) ?? 0) + 1);
  const words = [...counts].map(([kind, number]) => many(number, kind));
  if (node.others) words.push(many(node.others, "other"));
  const [cpu, cpus] = node.cpu, [memory, memories] = node.memory;
  const size = [];
  if (cpus) size.push(`${(cpu / 1000).toFixed(1)} of ${(cpus / 1000).toFixed(1)} CPU`);
  if (memories) size.push(`${(memory / 2 ** 30).toFixed(1)} of ${(memories / 2 ** 30).toFixed(1)} GiB`);
  return [words.join(", ") || "no pods", ...size].join(" · ");
}

function chips(node) {
  const row = make("div", "chips");
  state.chips.forEach((chip, index) => {
    const kind = node.pulling.includes(chip.image) ? "pulling" : node.held.includes(chip.image) ? "held" : "missing";
    const mark = make("span", `chip ${kind}`, letter(index));
    mark.title = `${kind}: ${state.images[chip.image]}`;
    row.append(mark);
  });
  row.setAttribute("role", "img");
  row.setAttribute("aria-label", [...row.children].map((mark) => mark.title).join("; "));
  return row;
}

function podBox(pod, isFresh, isFirst) {
  const kind = LETTERS[pod.kind] ? pod.kind : "";
  const box = podButton(pod.uid, LETTERS[pod.kind] ?? pod.kind[0]);
  box.className = `pod ${kind}${pod.state === "running" ? "" : ` ${pod.state}`}${isFresh ? " fresh" : ""}`;
  box.title = `${pod.name}: ${pod.kind}, ${pod.state}, created ${day(pod.created)} UTC, ${state.images[pod.image] || "image not recorded"}`;
  box.setAttribute("aria-label", box.title);
  box.tabIndex = isFirst ? 0 : -1;
  return box;
}

// An arrow for each move: from the node that the pod left to where it is now.
function drawArrows() {
  const board = $("board").getBoundingClientRect();
  const place = (element, isTop) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2 - board.left, (isTop ? box.top + 12 : box.top + box.height / 2) - board.top];
  };
  const byName = new Map(state.nodes.map((node) => [node.name, boxes.get(node.uid).item]));
  const lines = [];
  for (const change of state.changes) {
    const from = byName.get(change.from);
    const to = byName.get(change.to)?.querySelector(`[data-uid="${CSS.escape(change.uid)}"]`);
    if (change.kind !== "moved" || !from || !to) continue;
    const line = document.createElementNS($("arrows").namespaceURI, "line");
    const [x1, y1] = place(from, true), [x2, y2] = place(to, false);
    for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(name, value);
    line.setAttribute("marker-end", "url(#head)");
    lines.push(line);
  }
  $("arrows").querySelector("g").replaceChildren(...lines);
}

new ResizeObserver(() => state?.nodes && drawArrows()).observe($("board"));

// ---- A pod's why.
async function explain(uid, name) {
  $("why-title").textContent = `Why: ${name}`;
  $("why-text").textContent = "…";
  $("why").showModal();
  try {
    const answer = await fetch(`api/why?uid=${encodeURIComponent(uid)}`);
    const found = await answer.json();
    $("why-text").textContent = found.text ?? found.error;
  } catch (error) {
    $("why-text").textContent = `No answer from roost view: ${error.message}`;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-uid]");
  if (button) explain(button.dataset.uid, button.title.split(":")[0] || button.textContent);
});

// Each node is one stop of the tabulator; arrows move within it.
document.addEventListener("keydown", (event) => {
  const pod = event.target.closest?.(".pods > .pod");
  if (!pod) return;
  const all = [...pod.parentElement.children], index = all.indexOf(pod);
  const row = all.findIndex((one) => one.offsetTop > all[0].offsetTop);
  const step = row < 0 ? all.length : row;
  const target = { ArrowRight: index + 1, ArrowLeft: index - 1, ArrowDown: index + step, ArrowUp: index - step, Home: 0, End: all.length - 1 }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  if (!all[target]) return;
  pod.tabIndex = -1;
  all[target].tabIndex = 0;
  all[target].focus();
});

$("live").addEventListener("click", () => goTo(null));
$("back").addEventListener("click", () => state && goTo(state.at - MINUTE));
$("forth").addEventListener("click", () => state && goTo(Math.min(state.at + MINUTE, state.end)));
// Browsers limit how often an address changes: it does when the slider is let go.
$("slider").addEventListener("input", () => goTo(Number($("slider").value) * SECOND, { keepsAddress: false }));
$("slider").addEventListener("change", keepAddress);
$("slider").addEventListener("blur", () => state && showTime());
$("span").addEventListener("change", () => state && showTime());
$("at").addEventListener("change", () => {
  const ms = Date.parse(`${$("at").value}Z`);
  if (!Number.isNaN(ms)) goTo(ms * 1000);
});
$("time").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", () => goTo(readAddress(), { keepsAddress: false }));
// For measuring: draws a state that is handed over.
addEventListener("roost-state", (event) => show(event.detail));
goTo(readAddress(), { keepsAddress: false });
