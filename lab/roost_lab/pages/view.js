// Shows one record or two at one moment: live, or at the time of the slider. Texts from the cluster are only ever texts.

const MINUTE = 60e6, SECOND = 1e6;
// ms: between two questions for the latest state.
const LIVE_TICK = 2000;
// ms: between two moments that are played, and the longest that one may count for if the answers are slow.
const TICK = 200, LONGEST_TICK = 1000;
// Arrows at a time: more would hide what they point at.
const MOST_ARROWS = 40;
// px: of the arrow to a pod that was placed; no longer than the gap above a node's pods, or it hides letters of images.
const PLACED_LENGTH = 12;
const KINDS = ["user", "build", "placeholder"];
const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const SVG = document.querySelector("svg.heads").namespaceURI;

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

const clock = (us) => new Date(us / 1000).toISOString().slice(11, 19);
const day = (us) => new Date(us / 1000).toISOString().slice(0, 19).replace("T", " ");

// Halves go to the even digit, as they do in Python.
function round(number) {
  const found = Math.round(number);
  return found - number === 0.5 && found % 2 ? found - 1 : found;
}

// To one decimal. Only quarters can be halfway: of other numbers, ten times the number may not be exact.
const tenths = (number) => (Number.isInteger(number * 4) ? round(number * 10) / 10 : Number(number.toFixed(1)));

// As show_span of phrases.py: 350 ms, 4.2 s, 3 min 5 s, 2 h 10 min.
function span(us) {
  const seconds = Math.max(0, us) / SECOND;
  if (tenths(seconds) < 60) return seconds > 0 && seconds < 0.9995 ? `${round(seconds * 1000)} ms` : `${tenths(seconds)} s`;
  return round(seconds) < 3600 ? inTwo(round(seconds), "min", "s") : inTwo(round(seconds / 60), "h", "min");
}

function inTwo(amount, large, small) {
  const rest = amount % 60;
  return `${Math.floor(amount / 60)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
}

// Of a node or a pod: nobody needs its tenths.
const age = (us) => `${span(Math.floor(us / SECOND) * SECOND)} old`;

// Numbers and their units stay in one line.
const whole = (text) => text.replace(/(\d) (?=(?:ms|s|min|h|%)(?!\w))/g, "$1\u00a0");

const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// ---- The records, each in a part of the page that is drawn from the template.
class Side {
  constructor(record, name, isAlone) {
    this.record = record;
    this.name = name;
    this.isAlone = isAlone;
    // The state that is shown.
    this.state = null;
    // Node uid -> its box, and what it was drawn from.
    this.boxes = new Map();
    // The first one's ids are those of the template.
    this.suffix = record ? `-${record + 1}` : "";
    const part = $("side").content.cloneNode(true);
    for (const element of part.querySelectorAll("[id]")) element.id += this.suffix;
    for (const element of part.querySelectorAll("[aria-labelledby]")) {
      element.setAttribute("aria-labelledby", element.getAttribute("aria-labelledby") + this.suffix);
    }
    part.firstElementChild.dataset.record = record;
    this.part = part.firstElementChild;
    $("sides").append(part);
    if (!isAlone) {
      this.heading = make("h2", "name", name);
      this.part.prepend(this.heading);
    }
    new ResizeObserver(() => this.state && drawArrows(this)).observe(this.$("board"));
  }

  $(id) {
    return $(id + this.suffix);
  }
}

// ---- What is shown. at: µs since 1970; null: live, or of two records the last moment of both, until it is known.
let at = null;
let sides = [];
let isAsking = false;
let isStale = false;
let isPlaying = false;
let live = 0;
// What the slider covers: its span's value, and from and to in µs; and what happened then: server.py's `story`.
let range = null;
let story = { courses: [] };
// namespace/name of the pod that "next slow start" found.
let picked = "";
// What a file that was saved holds in place of a server: shareable.py.
let saved = null;

const shown = () => sides.filter((side) => side.state).map((side) => side.state);
const begin = () => Math.min(...shown().map((state) => state.begin));
const end = () => Math.max(...shown().map((state) => state.end));
// The moment that is shown.
const now = () => at ?? shown()[0].at;

function readAddress() {
  // Not as a form's fields: there, the + of a zone is a space.
  const wanted = /^#at=(.+)$/.exec(location.hash)?.[1].replace(/%3A/gi, ":");
  // Without a zone: UTC.
  const ms = wanted ? Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(wanted) ? wanted : `${wanted}Z`) : NaN;
  return Number.isNaN(ms) ? null : ms * 1000;
}

function keepAddress() {
  try {
    history.replaceState(null, "", at === null ? location.pathname : `#at=${new Date(at / 1000).toISOString()}`);
  } catch {
    // Where a mail is read, the address may be out of reach: it only isn't kept.
  }
}

function goTo(us, { keepsAddress = true } = {}) {
  pause();
  picked = "";
  at = us === null ? null : Math.round(us);
  if (keepsAddress) keepAddress();
  return ask();
}

// The header tells the server that this page asks: no other may.
async function question(path) {
  if (saved) return fromFile(new URL(path, "file:///"));
  const answer = await fetch(path, { headers: { "X-Roost-View": "1" } });
  return answer.json();
}

// ---- A file that was saved: the same answers, without a server.
async function readSaved() {
  const text = $("record")?.textContent;
  if (!text) return;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  saved = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

function fromFile({ pathname, searchParams }) {
  const record = Number(searchParams.get("record")), wanted = searchParams.get("at");
  if (pathname === "/api/records") return { records: saved.names };
  if (pathname === "/api/story") return saved.story;
  if (pathname === "/api/why") return { text: saved.whys[record][searchParams.get("uid")] ?? "This file explains the slowest starts alone; roost why explains every pod of the record." };
  const frames = saved.frames[record];
  const frame = wanted === null ? frames.at(-1) : frames.findLast((one) => one.at <= Number(wanted)) ?? frames[0];
  const things = (numbers) => numbers.map((number) => saved.things[number]);
  const nodes = things(frame.nodes).map((node) => ({ ...node, pods: things(node.pods) }));
  return { ...frame, nodes, pending: things(frame.pending), changes: things(frame.changes) };
}

// One question at a time: a slider that moves asks for where it is when the last answer has come.
async function ask() {
  if (isAsking) {
    isStale = true;
    return;
  }
  clearTimeout(live);
  isAsking = true;
  try {
    do {
      isStale = false;
      const asked = at;
      const wanted = asked === null ? "" : `&at=${asked}`;
      const found = await Promise.all(sides.map((side) => question(`api/moment?record=${side.record}${wanted}`)));
      // Each of two records has answered with its own end: they are asked again, for the end of the shorter one.
      const ends = found.filter((one) => one.end).map((one) => one.end);
      if (asked === null && sides.length > 1 && ends.length && !found.some((one) => one.error)) {
        at ??= Math.min(...ends);
        isStale = true;
      } else if ((asked === null) === (at === null)) showAll(found);
    } while (isStale);
  } catch (error) {
    pause();
    say(`No answer from roost view: ${error.message}`);
  } finally {
    isAsking = false;
    if (at === null && sides.length === 1) live = setTimeout(ask, LIVE_TICK);
  }
}

function say(text) {
  $("status").textContent = text;
}

// ---- Playing: the time goes on by itself until the record's end, or until one goes elsewhere.
function play() {
  if (!shown().length) return;
  const from = at === null || at >= end() ? Number($("slider").min) * SECOND : at;
  goTo(Math.max(from, begin()), { keepsAddress: false });
  setPlaying(true);
  let before = performance.now();
  const step = async () => {
    if (!isPlaying) return;
    const elapsed = Math.min(performance.now() - before, LONGEST_TICK);
    before = performance.now();
    at = Math.round(Math.min(at + elapsed * 1000 * Number($("speed").value), end()));
    await ask();
    if (!isPlaying) return;
    if (at < end()) return setTimeout(step, TICK);
    pause();
  };
  setTimeout(step, TICK);
}

function pause() {
  if (!isPlaying) return;
  setPlaying(false);
  keepAddress();
}

function setPlaying(value) {
  isPlaying = value;
  $("play").textContent = value ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(value));
}

// ---- Drawing.
function showAll(found) {
  const error = found.find((one) => one.error)?.error;
  if (error) {
    pause();
    return say(error);
  }
  sides.forEach((side, index) => {
    side.state = found[index].empty ? null : found[index];
  });
  if (!shown().length) return say("Nothing has been recorded yet.");
  $("when").textContent = `${day(now())} UTC`;
  const age = Date.now() * 1000 - end();
  $("sentence").textContent = whole(story.sentence || (shown().length === 1 ? shown()[0].sentence : ""));
  if (!picked) say(at === null ? (age > 3 * MINUTE ? `The record ended ${span(age)} ago; this is its last state.` : "Live.")
    : saved ? `This file holds a moment each ${span(saved.step)}, each minute while many people come, and its slow starts.` : "As recorded.");
  $("live").setAttribute("aria-pressed", String(at === null));
  showTime();
  showLegend();
  for (const side of sides) show(side);
  root.dataset.shown = String(now());
}

function show(side) {
  const state = side.state;
  if (side.heading) side.heading.textContent = side.name + (state ? "" : ": nothing has been recorded");
  if (!state) return;
  side.$("notices").replaceChildren(...state.notices.map((text) => {
    const notice = make("div", "notice");
    notice.setAttribute("role", "note");
    notice.append(make("p", "", text));
    return notice;
  }));
  showCounts(side);
  showPending(side);
  showChanges(side);
  showNodes(side);
  drawArrows(side);
}

function showTime() {
  const value = $("span").value, slider = $("slider");
  // It doesn't move while the moment is within it.
  if (range?.value !== value || now() < range.from || now() > range.to) {
    const length = Number(value) * SECOND || end() - begin();
    // It ends at the record's end, or has the moment in its middle; live, it ends with the minute.
    const last = at === null ? Math.ceil(end() / MINUTE) * MINUTE : Math.min(end(), Math.max(now() + length / 2, begin() + length));
    range = { value, from: Math.max(begin(), last - length), to: last };
    slider.min = Math.ceil(range.from / SECOND);
    slider.max = Math.ceil(last / SECOND);
    tell();
  }
  slider.value = Math.round(now() / SECOND);
  slider.setAttribute("aria-valuetext", `${day(now())} UTC`);
  if (document.activeElement !== $("at")) $("at").value = day(now()).replace(" ", "T");
  showScore();
}

// ---- What happened in the slider's range: a lane for each record, and its score up to the moment.
async function tell() {
  const asked = range;
  const found = await question(`api/story?from=${Math.floor(asked.from)}&to=${Math.ceil(asked.to)}`).catch(() => null);
  // The range may have changed meanwhile.
  if (asked !== range || !found?.courses) return;
  story = found;
  if (story.sentence) $("sentence").textContent = whole(story.sentence);
  $("course").hidden = $("figures").hidden = $("slow").hidden = $("worst").hidden = !story.courses.length;
  document.body.classList.toggle("plots", story.courses.length > 0);
  $("slow").disabled = !story.courses.some((course) => course.slow.length);
  $("worst").disabled = worst(story) === null;
  showFigures();
  showTimeline();
  showScore();
  showLegend();
  for (const side of sides) if (side.state) showCounts(side);
}

// The middle of the step in which most people waited; of two records, in which their numbers differ most. null: nobody did.
function worst({ courses = [], to }, from = 0, until = Infinity) {
  if (!courses.length) return null;
  const waiting = courses[0].waiting.map((_, step) => courses.map((course) => course.waiting[step]));
  const isIn = (step) => courses[0].from + step * courses[0].step < until && courses[0].from + (step + 1) * courses[0].step > from;
  const amounts = waiting.map((each, step) => !isIn(step) ? [-1, -1] : [courses.length > 1 ? Math.max(...each) - Math.min(...each) : 0, Math.max(...each)]);
  const found = amounts.reduce((best, one, step) => (one[0] > amounts[best][0] || (one[0] === amounts[best][0] && one[1] > amounts[best][1]) ? step : best), 0);
  return amounts[found][1] > 0 ? Math.min(to, Math.round(courses[0].from + (found + 0.5) * courses[0].step)) : null;
}

const most = (key) => Math.max(1e-9, ...story.courses.flatMap((course) => course[key]));

function drawing(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// The three figures of the whole range; of two records the first one's, then the second one's.
function showFigures() {
  const courses = story.courses, starts = [...new Set(courses.map((course) => course.count))];
  const rows = [
    ["Starts longer than 30 s", (course) => course.slow_count, () => `of ${starts.map((count) => count.toLocaleString("en")).join(" → ")} ${starts.at(-1) === 1 ? "start" : "starts"}`],
    ["95 of 100 people waited at most", (course) => span(course.p95_us), (course) => course.until],
    ["Node-hours", (course) => course.node_hours.toFixed(1), () => "of all nodes"],
  ];
  $("figures").replaceChildren(...rows.map(([title, figure, about]) => {
    const tile = make("div"), value = make("dd");
    const last = courses.at(-1);
    if (courses.length > 1) value.append(make("s", "", `${figure(courses[0])} → `));
    value.append(String(last ? figure(last) : ""));
    value.append(make("small", "", last ? about(last) : ""));
    tile.append(make("dt", "", whole(title)), value);
    return tile;
  }));
}

// viewBox of a plot: its height, and where its axis is: people stand above it, downloads hang below.
const PLOT = { height: 112, axis: 86, top: 2 };
// Seconds between two times that an axis names.
const TIME_STEPS = [60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
// px that a time takes on the axis.
const TIME_WIDTH = 64;
// Crowds that are told of each record; the largest are.
const MOST_CROWDS = 3;

// The largest of 1, 2 and 5 times a power of ten that makes at least two steps; people are whole.
function niceStep(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most / 2)));
  return [5, 2, 1].map((times) => times * power).find((step) => step <= Math.max(1, most / 2));
}

// All lanes have one scale.
function showTimeline() {
  const people = most("waiting"), colds = most("cold");
  const step = story.courses.length ? span(story.courses[0].step) : "";
  $("course-legend").replaceChildren(legendItem("waits", "", `people who wait, mean of ${step}`),
    legendItem("colds", "", `starts that download an image, in ${step}: ${most("cold") < 1 ? "none" : `at most ${colds}`}`));
  $("timeline").replaceChildren(...story.courses.map((course, index) => {
    const lane = make("div", "lane");
    const about = `${course.slow_count} of ${many(course.count, "start")} took longer than 30 s, ${course.cold_count || "none"} downloaded an image`;
    if (!sides[index].isAlone) lane.append(make("h3", "", sides[index].name));
    lane.append(make("p", "quiet", `${about}.`));
    const crowds = [...course.crowds].sort((one, other) => other.people - one.people).slice(0, MOST_CROWDS).sort((one, other) => one.at - other.at);
    lane.append(plot(course, people, colds, crowds, `${sides[index].name} ${about}`.trim()));
    const list = make("ul", "crowds");
    list.append(...crowds.map((crowd, number) => {
      const item = make("li"), button = make("button");
      button.type = "button";
      button.append(make("i", "", String(number + 1)), crowd.text);
      button.addEventListener("click", () => goTo(worst(story, crowd.from, crowd.to + 10 * MINUTE) ?? crowd.at));
      item.append(button);
      return item;
    }));
    if (crowds.length) lane.append(list);
    return lane;
  }));
}

function plot(course, people, colds, crowds, label) {
  const area = make("div", "plot-area"), length = range.to - range.from;
  const { height, axis, top } = PLOT;
  const picture = drawing("svg", { viewBox: `0 0 1000 ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const x = (us) => ((us - range.from) / length) * 1000, at = (step) => x(course.from + step * course.step).toFixed(1);
  // The axis ends with a number: the highest bar is below a line that says how many.
  const each = niceStep(people), highest = Math.ceil(people / each - 1e-9) * each;
  const y = (number) => axis - (number / highest) * (axis - top);
  const mark = (className, text, left, above) => {
    const element = make("span", className, text);
    if (left !== null) element.style.left = `${left / 10}%`;
    if (above !== null) element.style.top = `${(above / height) * 100}%`;
    area.append(element);
  };
  for (let number = 0; number <= highest; number += each) {
    mark("y", number ? String(number) : "0", null, y(number));
    if (number) picture.append(drawing("path", { class: "grid", d: `M0 ${y(number).toFixed(1)}H1000` }));
  }
  mark("y unit", "people", null, -14);
  const width = Math.max(200, $("timeline").clientWidth - 60);
  const step = TIME_STEPS.find((seconds) => ((length / SECOND / seconds) * TIME_WIDTH) < width) ?? TIME_STEPS.at(-1);
  for (let us = Math.ceil(range.from / SECOND / step) * step * SECOND; us < range.to; us += step * SECOND) {
    // At the edges they would leave the plot.
    if (x(us) < 15 || x(us) > 985) continue;
    mark("x", us % 86400e6 ? clock(us).slice(0, 5) : day(us).slice(5, 10), x(us), null);
    picture.append(drawing("path", { class: "grid", d: `M${x(us).toFixed(1)} ${axis}v4` }));
  }
  const waits = course.waiting.map((number, step) => `L${at(step)} ${y(number).toFixed(1)}H${at(step + 1)}`);
  const bars = course.cold.map((number, step) => (number ? `M${at(step)} ${axis + 1}V${(axis + 1 + (number / colds) * (height - axis - 1)).toFixed(1)}H${at(step + 1)}V${axis + 1}Z` : ""));
  crowds.forEach((crowd, number) => {
    if (crowd.at < range.from || crowd.at > range.to) return;
    mark("badge", String(number + 1), x(crowd.at), null);
    picture.append(drawing("path", { class: "crowd", d: `M${x(crowd.at).toFixed(1)} 0V${axis}` }));
  });
  picture.append(drawing("path", { class: "waits", d: `M${at(0)} ${axis}${waits.join("")}V${axis}Z` }), drawing("path", { class: "colds", d: bars.join("") }),
    drawing("path", { class: "axis", d: `M0 ${axis}H1000` }), drawing("path", { class: "head", d: "" }));
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    goTo(Math.min(end(), range.from + ((event.clientX - box.left) / box.width) * length));
  });
  area.prepend(picture);
  return area;
}

function showScore() {
  const place = range && (((now() - range.from) / (range.to - range.from)) * 1000).toFixed(1);
  for (const head of $("timeline").querySelectorAll(".head")) head.setAttribute("d", `M${place} 0V${PLOT.height}`);
  sides.forEach((side, index) => {
    const course = story.courses[index];
    side.$("score").hidden = !course;
    if (!course) return;
    // To the end of the step in which the moment is.
    const steps = Math.floor((now() - course.from) / course.step) + 1;
    const soFar = (key) => course[key].slice(0, Math.max(0, steps)).reduce((sum, number) => sum + number, 0);
    const hours = ((soFar("nodes") * course.step) / 3600e6).toFixed(1);
    side.$("score").textContent = `So far: ${many(soFar("started"), "start")}, ${soFar("cold") || "none"} with a download; people waited ${span(soFar("waiting") * course.step)} in all; ${hours} node-hours.`;
  });
}

// The launch that is slow next, in any of the records: half of its wait is over then.
async function nextSlow() {
  const all = story.courses.flatMap((course) => course.slow).sort((one, other) => one[0] - other[0]);
  const found = all.find(([us]) => us > now()) ?? all[0];
  if (!found) return;
  await goTo(found[0]);
  picked = found[3];
  const waits = story.courses.map((course, index) => {
    const same = course.slow.find((one) => one[3] === picked);
    return `${same ? `waits ${span(same[1])}` : "waits less than 30 s"}${sides[index].isAlone ? "" : ` with ${sides[index].name}`}`;
  });
  say(`${picked} ${waits.join(", ")}.`);
  for (const side of sides) if (side.state) showNodes(side);
}

// What is there, and who waits at this moment.
function showCounts(side) {
  const state = side.state;
  const words = kindsOf([state]).filter((kind) => state.counts[kind]).map((kind) => many(state.counts[kind], kind));
  const isEmpty = !state.nodes.length && !words.length && !state.pending_count;
  const outside = outsideOf(state, isEmpty);
  const waiting = state.pending_count ? `; ${many(state.pending_count, "pod")} without a node` : "";
  const counts = `${many(state.nodes.length, "node")}: ${words.join(", ") || "no pods"}${waiting}.`;
  side.$("counts").textContent = outside && isEmpty ? outside : `${outside}${counts}`;
  side.$("now").textContent = isEmpty || (sides.length === 1 && !story.sentence) ? "" : state.sentence;
}

const kindsOf = (states) => [...new Set([...KINDS, ...states.flatMap((state) => Object.keys(state.counts)).sort()])];

// Images with chips in any of the records: each has one letter; most users first.
function catalogue() {
  const found = new Map();
  for (const state of shown()) {
    for (const chip of state.chips) {
      const image = state.images[chip.image];
      found.set(image, { short: chip.short, users: Math.max(chip.users, found.get(image)?.users ?? 0) });
    }
  }
  return new Map([...found].sort(([, one], [, other]) => other.users - one.users));
}

function showLegend() {
  const states = shown(), images = catalogue();
  const isThere = (kind) => states.some((state) => state.counts[kind] || state.pending.some((pod) => pod.kind === kind));
  const marks = kindsOf(states).filter(isThere).map((kind) => legendItem(`pod ${KINDS.includes(kind) ? kind : ""}`, "", kind));
  marks.push(legendItem("pod pulling", "", "downloads its image"), legendItem("pod starting", "", "starts, or doesn't answer yet"));
  marks.push(legendItem("pod fresh", "", "placed in the last minute"));
  if (states.some((state) => state.pending_count)) marks.push(legendItem("pod pending", "", "has no node"));
  for (const [kind, about] of [["placed", "placed"], ["moved", "moved there"], ["pre-empted", "pre-empted for that pod"]]) {
    if (states.some((state) => state.change_counts[kind])) marks.push(legendArrow(kind, about));
  }
  [...images].forEach(([image, chip], index) => {
    const item = legendItem("chip held", letter(index), `${chip.short} (${many(chip.users, "user")})`);
    item.title = image;
    marks.push(item);
  });
  if (images.size) {
    marks.push(legendItem("chip missing", "A", "not on the node"), legendItem("chip pulling", "A", "users kept off: still downloading"));
    marks.push(legendItem("chip unknown", "A", "not reported"));
  }
  if (states.some((state) => state.nodes.some((node) => node.cpu_millicores[1] || node.memory_bytes[1]))) {
    marks.push(legendItem("full", "", "how full the node is (CPU or memory)"));
  }
  $("legend").replaceChildren(...marks);
}

// What to say where the moment is before the record's begin, or after its end; "" within the record.
function outsideOf(state, isEmpty) {
  if (state.begin > now()) return `The record begins ${day(state.begin)} UTC${isEmpty ? "." : "; of the time before, only this is known. "}`;
  if (state.end < now()) return `The record ends ${day(state.end)} UTC${isEmpty ? "." : "; this is its last state. "}`;
  return "";
}

const letter = (index) => String.fromCharCode(65 + index);

function legendItem(className, text, about) {
  const item = make("li");
  item.append(make("i", className, text), ` ${about}`);
  return item;
}

function legendArrow(kind, about) {
  const item = make("li");
  const picture = drawing("svg", { viewBox: "0 0 40 16", "aria-hidden": "true" });
  picture.append(arrow(kind, { x1: 2, y1: 8, x2: 32, y2: 8 }));
  item.append(picture, ` ${about}`);
  return item;
}

function podButton(uid, name) {
  const button = make("button", "", name);
  button.type = "button";
  button.dataset.uid = uid;
  return button;
}

function showPending(side) {
  const state = side.state;
  side.$("pending-section").hidden = !state.pending_count;
  const kinds = new Set(state.pending.map((pod) => pod.kind)), isOne = kinds.size === 1 && !kinds.has("other");
  side.$("pending-title").textContent = `${many(state.pending_count, isOne ? [...kinds][0] : "pod")} without a node`;
  side.$("pending-section").classList.toggle("waits", kinds.has("user"));
  const lines = state.pending.map((pod) => {
    const line = make("li");
    line.append(podButton(pod.uid, pod.name), ` (${pod.kind}) for ${span(state.at - pod.created_us)}: ${pod.reason || "no failed attempt is recorded"}`);
    return line;
  });
  if (state.pending_count > lines.length) lines.push(make("li", "", `and ${state.pending_count - lines.length} younger ones`));
  side.$("pending").replaceChildren(...lines);
  side.$("waiting").replaceChildren(...state.pending.map((pod, index) => waitingBox(state, pod, index === 0)));
}

function showChanges(side) {
  const state = side.state;
  const lines = state.changes.map((change) => {
    const line = make("li");
    line.append(`${clock(change.at_us)} ${change.kind} ${change.pod_kind} `, podButton(change.uid, change.name));
    if (change.from_node) line.append(change.kind === "moved" ? `: ${change.from_node}` : ` on ${change.from_node}`);
    if (change.to_node) line.append(` → ${change.to_node}`);
    if (change.by_name) line.append(" for ", podButton(change.by_uid, change.by_name));
    return line;
  });
  const counts = Object.entries(state.change_counts);
  const words = counts.map(([kind, number]) => `${number} ${kind}`).join(", ");
  const rest = counts.reduce((sum, [, number]) => sum + number, -state.changes.length);
  if (rest > 0) lines.push(make("li", "", `and ${rest} before these`));
  side.$("changes-title").textContent = `The last minute: ${words || "nothing was placed, moved or pre-empted"}`;
  side.$("changes").replaceChildren(...lines);
}

function showNodes(side) {
  const { state, boxes } = side;
  const fresh = new Set(state.changes.filter((change) => change.to_node).map((change) => change.uid));
  const focused = document.activeElement?.closest?.(".pods") ? document.activeElement.dataset.uid : null;
  const shown = new Set();
  const letters = new Map([...catalogue().keys()].map((image, index) => [image, letter(index)]));
  const list = side.$("nodes");
  let before = null;
  for (const node of state.nodes) {
    shown.add(node.uid);
    const key = JSON.stringify([node, node.pods.map((pod) => [fresh.has(pod.uid), pod.name === picked]), [...letters]]);
    let box = boxes.get(node.uid);
    if (box?.key !== key) {
      const item = nodeBox(state, node, fresh, letters);
      if (box) box.item.replaceWith(item);
      box = { key, item };
      boxes.set(node.uid, box);
    }
    box.item.querySelector(".age").textContent = node.created_us > 0 ? age(state.at - node.created_us) : "";
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

// Of a node whose state isn't recorded nothing is said: a notice says so once.
const STATES = { "not ready": "not ready", leaving: "leaving", cordoned: "cordoned" };

function nodeBox(state, node, fresh, letters) {
  const item = make("li", `node ${node.state.replace(" ", "-")}`);
  const head = make("h3");
  const name = make("span", "", node.short);
  name.title = node.name;
  head.append(name, make("span", "quiet age"));
  if (STATES[node.state]) head.append(make("span", "mark", STATES[node.state]));
  for (const set of node.attracts) head.append(make("span", "mark", `attracts ${set}`));
  if (node.warm) {
    const mark = make("span", "mark warm", `warm set: ${node.warm}`);
    mark.title = `The webhook chose this node first for ${many(node.warm, "pod")} created in the last ten minutes and not deleted since`;
    head.append(mark);
  }
  item.append(head, ...contents(node));
  if (state.chips.length) item.append(chips(state, node, letters));
  const pods = make("div", "pods");
  pods.setAttribute("role", "group");
  pods.setAttribute("aria-label", `Pods on ${node.name}; arrow keys move among them`);
  node.pods.forEach((pod, index) => pods.append(podBox(state, pod, fresh.has(pod.uid), index === 0)));
  item.append(pods);
  return item;
}

// Its pods in words, and how full it is: the larger of the shares of CPU and memory that are requested.
function contents(node) {
  const counts = new Map();
  for (const pod of node.pods) counts.set(pod.kind, (counts.get(pod.kind) ?? 0) + 1);
  const words = [...counts].map(([kind, number]) => many(number, kind));
  if (node.others) words.push(many(node.others, "other"));
  const line = make("p", "", words.join(", ") || "no pods");
  const [cpu, cpus] = node.cpu_millicores, [memory, memories] = node.memory_bytes;
  const sizes = [];
  if (cpus) sizes.push([cpu / cpus, `${(cpu / 1000).toFixed(1)} of ${(cpus / 1000).toFixed(1)} CPU`]);
  if (memories) sizes.push([memory / memories, `${(memory / 2 ** 30).toFixed(1)} of ${(memories / 2 ** 30).toFixed(1)} GiB`]);
  if (!sizes.length) return [line];
  const full = Math.max(...sizes.map(([share]) => share)), bar = make("div", "full"), fill = make("i");
  fill.style.width = `${Math.min(100, full * 100)}%`;
  bar.append(fill);
  bar.setAttribute("role", "img");
  tellOf(bar, `${Math.round(full * 100)} % full: ${sizes.map(([, text]) => text).join(", ")}`);
  return [line, bar];
}

function chips(state, node, letters) {
  const row = make("div", "chips"), images = new Map(state.chips.map((chip) => [state.images[chip.image], chip.image]));
  for (const [image, text] of letters) {
    const index = images.get(image);
    if (index === undefined) continue;
    const kind = ["pulling", "held", "missing"].find((one) => node[one].includes(index)) ?? "unknown";
    const mark = make("span", `chip ${kind}`, text);
    mark.title = `${kind === "unknown" ? "not reported" : kind}: ${image}`;
    row.append(mark);
  }
  row.setAttribute("role", "img");
  row.setAttribute("aria-label", [...row.children].map((mark) => mark.title).join("; "));
  return row;
}

function podBox(state, pod, isFresh, isFirst) {
  const about = `${pod.state}, created ${day(pod.created_us)} UTC, ${state.images[pod.image] || "image not recorded"}`;
  return podMark(pod, `${pod.state === "running" ? "" : pod.state}${isFresh ? " fresh" : ""}`, about, isFirst);
}

function waitingBox(state, pod, isFirst) {
  return podMark(pod, "pending", `waits for a node for ${span(state.at - pod.created_us)}`, isFirst);
}

// className: what its kind and its being picked don't say.
function podMark(pod, className, about, isFirst) {
  const box = podButton(pod.uid, "");
  box.className = `pod ${KINDS.includes(pod.kind) ? pod.kind : ""} ${className}${pod.name === picked ? " picked" : ""}`;
  tellOf(box, `${pod.name}: ${pod.kind}, ${about}`);
  box.dataset.name = pod.name;
  box.tabIndex = isFirst ? 0 : -1;
  return box;
}

// To those who point at it, and to a screen reader.
function tellOf(element, text) {
  element.title = text;
  element.setAttribute("aria-label", text);
}

// ---- Arrows of the last minute: a short one to a pod that was placed, from node to node where a placeholder moved, and
// from the pod for which another one was pre-empted to where that one was.
const ARROWS = ["placed", "moved", "pre-empted"];

function arrow(kind, ends) {
  return drawing("line", { ...ends, class: `arrow ${kind}`, "marker-end": `url(#head-${kind})` });
}

function drawArrows(side) {
  const { state, boxes } = side;
  const board = side.$("board").getBoundingClientRect();
  const byName = new Map(state.nodes.map((node) => [node.name, boxes.get(node.uid).item]));
  const podOf = (item, uid) => item?.querySelector(`[data-uid="${CSS.escape(uid)}"]`);
  const nodeOf = new Map();
  for (const node of state.nodes) for (const pod of node.pods) nodeOf.set(pod.uid, node.name);
  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2 - board.left, box.top + box.height / 2 - board.top];
  };
  // Of a node: the right end of the gap above its pods, where no arrow crosses a text.
  const top = (element) => {
    const box = element.querySelector(".pods").getBoundingClientRect();
    return [box.right - 6 - board.left, box.top - 6 - board.top];
  };
  const ends = (change) => {
    const from = byName.get(change.from_node), to = podOf(byName.get(change.to_node), change.uid);
    if (change.kind === "placed" && to) {
      const [x] = middle(to), y = to.getBoundingClientRect().top - board.top;
      return [x, Math.max(byName.get(change.to_node).getBoundingClientRect().top - board.top, y - PLACED_LENGTH), x, y];
    }
    if (change.kind === "moved" && from && to) return [...top(from), ...middle(to)];
    const by = podOf(byName.get(nodeOf.get(change.by_uid)), change.by_uid);
    // The pod itself while it terminates.
    if (change.kind === "pre-empted" && by && from) {
      const victim = podOf(from, change.uid);
      return [...middle(by), ...(victim ? middle(victim) : top(from))];
    }
    return null;
  };
  const lines = [];
  for (const change of state.changes) {
    if (lines.length === MOST_ARROWS) break;
    const found = ARROWS.includes(change.kind) && ends(change);
    if (!found) continue;
    const [x1, y1, x2, y2] = found.map((number) => Math.round(number));
    lines.push(arrow(change.kind, { x1, y1, x2, y2 }));
  }
  side.$("arrows").querySelector("g").replaceChildren(...lines);
  const all = ARROWS.reduce((sum, kind) => sum + (state.change_counts[kind] ?? 0), 0);
  side.$("arrows-note").textContent = all > lines.length ? `Arrows show ${lines.length} of ${all} changes: the newest, of pods that are still there.` : "";
}

// ---- A pod's why.
async function explain(record, uid, name) {
  $("why-title").textContent = `Why: ${name}`;
  $("why-text").textContent = "…";
  $("why").showModal();
  try {
    const found = await question(`api/why?record=${record}&uid=${encodeURIComponent(uid)}`);
    $("why-text").textContent = found.text ?? found.error;
  } catch (error) {
    $("why-text").textContent = `No answer from roost view: ${error.message}`;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-uid]");
  const record = button?.closest("[data-record]").dataset.record;
  if (button) explain(record, button.dataset.uid, button.title.split(":")[0] || button.textContent);
});

// One launch has one name in all records: what is pointed at is marked in each.
document.addEventListener("pointerover", (event) => {
  const name = event.target.dataset?.name;
  for (const box of document.querySelectorAll(".pod.same")) box.classList.remove("same");
  if (name && sides.length > 1) for (const box of document.querySelectorAll(`.pod[data-name="${CSS.escape(name)}"]`)) box.classList.add("same");
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

$("slow").addEventListener("click", nextSlow);
$("worst").addEventListener("click", () => goTo(worst(story)));
$("live").addEventListener("click", () => goTo(null));
$("play").addEventListener("click", () => (isPlaying ? pause() : play()));
$("back").addEventListener("click", () => shown().length && goTo(now() - MINUTE));
$("forth").addEventListener("click", () => shown().length && goTo(Math.min(now() + MINUTE, end())));
// Browsers limit how often an address changes: it does when the slider is let go.
$("slider").addEventListener("input", () => shown().length && goTo(Math.min(Number($("slider").value) * SECOND, end()), { keepsAddress: false }));
$("slider").addEventListener("change", keepAddress);
$("slider").addEventListener("blur", () => shown().length && showTime());
$("span").addEventListener("change", () => shown().length && showTime());
$("at").addEventListener("change", () => {
  const ms = Date.parse(`${$("at").value}Z`);
  if (!Number.isNaN(ms)) goTo(ms * 1000);
});
$("time").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", () => goTo(readAddress(), { keepsAddress: false }));
// For measuring: draws a state that is handed over.
addEventListener("roost-state", (event) => showAll([event.detail]));

async function start() {
  try {
    await readSaved();
    const found = await question("api/records");
    if (found.error) return say(found.error);
    sides = found.records.map((name, record) => new Side(record, name, found.records.length === 1));
  } catch (error) {
    return say(`No answer from roost view: ${error.message}`);
  }
  root.classList.toggle("two", sides.length > 1);
  if (sides.length > 1) $("title").textContent = `${sides[0].name} → ${sides[1].name}`;
  $("live").hidden = sides.length > 1 || saved !== null;
  const first = await question("api/story").catch(() => ({}));
  // A file shows the largest crowd's hour: over a day it is too narrow to be seen.
  if (saved && first.courses?.some((course) => course.crowds.length)) $("span").value = "3600";
  // A record that goes on is followed; one that has ended begins where it hurts most.
  const hasEnded = sides.length > 1 || saved || Date.now() * 1000 - first.to > 3 * MINUTE;
  return goTo(readAddress() ?? (hasEnded ? worst(first) : null), { keepsAddress: false });
}

start();
