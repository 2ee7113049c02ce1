// Draws the page's figures as SVG, in colours that follow the reader's scheme and with texts that fit in the reader's
// font; fills long tables when they are opened, and sorts them. A figure is what roost_lab/pages/drawing.py makes.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // px: least room between texts in a line, smallest type, from the mouse to a mark that it still names.
  const APART = 6, SMALLEST = 8, NEAR = 10, TICK_SIZE = 11;
  const tint = (colour) => colour.startsWith("--") ? `var(${colour})` : colour;

  function make(name, attributes, parent, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  }

  // The width of a text in a plot, in px.
  const ruler = make("svg", { style: "position: absolute; width: 0; height: 0; visibility: hidden" }, document.body);
  ruler.setAttribute("aria-hidden", "true");
  const ruled = make("text", {}, ruler);
  function measure(text, size) {
    ruled.setAttribute("style", `font-size: ${size}px; white-space: pre`);
    ruled.textContent = text;
    return ruled.getComputedTextLength();
  }

  // Axes

  const amountOf = (value) => typeof value === "string" ? Date.parse(`${value.replace(" ", "T")}Z`) : value;
  const shown = (value, digits = 4) => value.toLocaleString("en", { maximumSignificantDigits: digits });

  function tickText(value, { tickformat = "", ticksuffix = "" }) {
    if (tickformat === ".0%") return `${shown(100 * value, 3)} %`;
    if (tickformat === ",~s" && value >= 1e3) return value >= 1e6 ? `${shown(value / 1e6)} M` : `${shown(value / 1e3)} k`;
    return shown(value, 6) + ticksuffix;
  }

  // 1, 2 or 5 times a power of ten, so that at most so many fit.
  function niceStep(span, most) {
    const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.9999);
  }

  // What turns a value into px, and the ticks; highest: of values where the axis has no range of its own.
  function scaleOf(axis, from, to, highest) {
    const isLog = axis.type === "log";
    const [low, high] = (axis.range ?? [0, highest || 1]).map(amountOf);
    const place = (value) => from + (to - from) * ((isLog ? Math.log10(value) : value) - low) / (high - low || 1);
    let ticks = axis.tickvals?.map((value, index) => [amountOf(value), axis.ticktext[index]]);
    if (!ticks) {
      const step = niceStep(high - low, axis.nticks ?? 5);
      ticks = [];
      for (let tick = Math.ceil(low / step) * step; tick <= high * 1.0001; tick += step) {
        ticks.push([Number(tick.toPrecision(12)), tickText(Number(tick.toPrecision(12)), axis)]);
      }
    }
    const inside = ([value]) => Math.abs(place(value) - (from + to) / 2) <= Math.abs(to - from) / 2 + 0.5;
    return { at: (value) => place(amountOf(value)), ticks: ticks.filter(inside) };
  }

  // The sum of what is stacked, and the highest other value, of each vertical axis.
  function highestOf(data, isStacked) {
    const sums = new Map(), highest = {};
    for (const trace of data) {
      trace.y.forEach((value, index) => {
        if (value === null) return;
        const axis = trace.yaxis ?? "y", key = `${axis} ${index}`;
        const sum = (isStacked && trace.type === "bar" ? sums.get(key) ?? 0 : trace.base?.[index] ?? 0) + value;
        if (trace.type === "bar") sums.set(key, sum);
        highest[axis] = Math.max(highest[axis] ?? 0, sum);
      });
    }
    return highest;
  }

  function drawText(text, x, y, anchor, size, colour, parent) {
    const lines = text.split("\n");
    const style = `font-size: ${size}px; fill: ${tint(colour)}`;
    const element = make("text", { x, y, "text-anchor": anchor, "dominant-baseline": "central", style }, parent);
    if (lines.length === 1) element.textContent = text;
    else lines.forEach((line, index) => make("tspan", { x, dy: index ? "1.2em" : 0 }, element, line));
    return element;
  }

  // Of labels that would touch, the ends stay, and each that is clear of those before it; none leaves the plot.
  function drawTimesOrValues(ticks, scale, y, width, parent) {
    const labels = ticks.map(([value, text]) => {
      const wide = Math.max(...text.split("\n").map((line) => measure(line, TICK_SIZE)));
      const middle = Math.min(Math.max(scale.at(value), wide / 2), width - wide / 2);
      return { text, middle, left: middle - wide / 2, right: middle + wide / 2 };
    }).sort((a, b) => a.left - b.left);
    const last = labels[labels.length - 1];
    let end = -Infinity;
    for (const label of labels) {
      if (label.left < end || (label !== last && label !== labels[0] && label.right + APART > last.left)) continue;
      drawText(label.text, label.middle, y, "middle", TICK_SIZE, "--quiet", parent);
      end = label.right + APART;
    }
  }

  // Marks: everything of one colour is one path, however many there are. hits: what the mouse finds.

  const box = (x, y, width, height) => `M${x.toFixed(1)} ${y.toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}h${(-width).toFixed(1)}z`;

  function textOf(trace, index) {
    const texts = trace.hovertext?.[index] ?? "";
    if (!trace.hover) return texts;
    const parts = { y: shown(trace.y[index]), x: trace.x[index], name: trace.name, text: trace.text?.[index], when: texts };
    return trace.hover.replace(/\{(\w+)\}/g, (_, key) => typeof parts[key] === "number" ? shown(parts[key], 3) : parts[key]);
  }

  function drawBars(trace, axes, stacks, isStacked, plot) {
    const lies = trace.orientation === "h", paths = new Map(), ranges = [];
    const sums = isStacked ? stacks : new Map();
    (lies ? trace.x : trace.y).forEach((value, index) => {
      if (value === null) return;
      const key = `${trace.yaxis} ${index}`, from = trace.base?.[index] ?? sums.get(key) ?? 0, to = from + value;
      if (isStacked) sums.set(key, to);
      let corner;
      if (lies) {
        const [left, right] = [axes.x.at(from), axes.x.at(to)], middle = axes.y.at(trace.y[index]);
        corner = [left, middle - trace.width / 2, right - left, trace.width];
        if (trace.error_x) {
          const { array, arrayminus } = trace.error_x;
          ranges.push(`M${axes.x.at(to - arrayminus[index])} ${middle}H${axes.x.at(to + array[index])}`);
        }
      } else {
        const begin = amountOf(trace.x[index]), [left, right] = [axes.x.at(begin), axes.x.at(begin + trace.width)];
        corner = [left, axes.y.at(to), right - left, Math.max(value ? 1 : 0, axes.y.at(from) - axes.y.at(to))];
      }
      const colour = Array.isArray(trace.marker.color) ? trace.marker.color[index] : trace.marker.color;
      if (corner[2] && corner[3]) paths.set(colour, (paths.get(colour) ?? "") + box(...corner));
      if (!trace.silent) plot.hits.push([...corner, textOf(trace, index)]);
    });
    for (const [colour, d] of paths) make("path", { d, style: `fill: ${plot.fill(colour)}` }, plot.marks);
    if (ranges.length) {
      make("path", { d: ranges.join(""), style: `stroke: ${tint(trace.error_x.color)}; stroke-width: 1.5` }, plot.marks);
    }
  }

  function drawPoints(trace, axes, plot) {
    const { size, color, symbol = "" } = trace.marker, ranges = [];
    let d = "";
    trace.y.forEach((value, index) => {
      if (value === null) return;
      const x = axes.x.at(amountOf(trace.x[index]) + (trace.shift ?? 0)), y = axes.y.at(value);
      d += symbol.startsWith("line") ? `M${x} ${y - size / 2}v${size}` : `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
      if (trace.error_x) ranges.push(`M${x} ${y}H${axes.x.at(trace.x[index] + trace.error_x.array[index])}`);
      plot.hits.push([x, y, 0, 0, textOf(trace, index)]);
    });
    const stroke = `fill: none; stroke: ${tint(color)}`;
    if (ranges.length) make("path", { d: ranges.join(""), style: `${stroke}; stroke-width: 2` }, plot.marks);
    const wide = symbol.startsWith("line") ? "stroke-width: 2" : `stroke-width: ${size}px; stroke-linecap: round`;
    make("path", { d, style: `${stroke}; ${wide}` }, plot.marks);
  }

  function drawLine(trace, axes, plot) {
    let d = "";
    trace.x.forEach((value, index) => {
      const x = axes.x.at(value).toFixed(1), y = axes.y.at(trace.y[index]).toFixed(1);
      d += !d ? `M${x} ${y}` : trace.line.shape === "hv" ? `H${x}V${y}` : `L${x} ${y}`;
      plot.hits.push([Number(x), Number(y), 0, 0, textOf(trace, index)]);
    });
    const dash = { dash: "8 5", dot: "2 4" }[trace.line.dash] ?? "none";
    const style = `fill: none; stroke: ${tint(trace.line.color)}; stroke-width: ${trace.line.width}px; stroke-dasharray: ${dash}`;
    make("path", { d, style }, plot.marks);
  }

  // The width that the longest line of names and numbers above bars needs.
  function longestLine(notes) {
    const lines = new Map();
    for (const note of notes) {
      const line = `${note.yref} ${note.y}`;
      const used = lines.has(line) ? lines.get(line) + APART : 0;
      lines.set(line, used + measure(note.text, note.font.size));
    }
    return Math.max(...lines.values());
  }

  // A name that was shortened for a phone is whole where there is room for it.
  function wholeName(note, room) {
    const isFit = note.hovertext && !note.hovertext.includes(" ") && measure(note.hovertext, note.font.size) < room * 0.75;
    return isFit ? { ...note, text: note.hovertext } : note;
  }

  function drawOne(holder, isPaper) {
    const { data, layout, common } = figures[holder.dataset.figure];
    const scale = isPaper ? Math.min(1, PAGE_HEIGHT / layout.height) : 1;
    holder.style.zoom = scale;
    const width = holder.parentElement.clientWidth / scale, { height, margin } = layout;
    const svg = make("svg", { width, height, class: "drawn", "aria-hidden": "true" }, document.createDocumentFragment());
    const plot = { hits: [], fill: tint };
    if (JSON.stringify(data).includes('"--placeholder"')) {
      const id = `hatch-${holder.dataset.figure}`;
      const pattern = make("pattern", {
        id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
      }, make("defs", {}, svg));
      make("path", { d: "M0 0h3v6h-3z", style: "fill: var(--placeholder)" }, pattern);
      plot.fill = (colour) => colour === "--placeholder" ? `url(#${id})` : tint(colour);
    }
    const traces = data.map((trace) => trace.x ? trace : { ...trace, ...common });
    const isStacked = layout.barmode === "stack", highest = highestOf(traces.filter((one) => one.orientation !== "h"), isStacked);
    const bottom = height - margin.b, keys = Object.keys(layout).filter((key) => key.startsWith("yaxis"));
    const axes = {};
    let left = margin.l;
    for (const key of keys) {
      const axis = layout[key], [low, high] = axis.domain ?? [0, 1], inner = bottom - margin.t;
      const name = key.replace("axis", "");
      axes[name] = scaleOf(axis, bottom - inner * low, bottom - inner * high, highest[name]);
      if (axis.visible === false) continue;
      left = Math.max(left, ...axes[name].ticks.map(([, text]) => measure(text, TICK_SIZE) + APART + 2));
    }
    const right = width - margin.r, x = scaleOf(layout.xaxis, left, right, 1);
    let grid = "";
    const labels = make("g", { class: "labels" }, svg);
    if (layout.xaxis.showgrid !== false) for (const [value] of x.ticks) grid += `M${x.at(value)} ${margin.t}V${bottom}`;
    else for (const [value] of x.ticks) grid += `M${x.at(value)} ${bottom}v4`;
    for (const key of keys.filter((one) => layout[one].visible !== false)) {
      const y = axes[key.replace("axis", "")];
      for (const [value, text] of y.ticks) {
        grid += `M${left} ${y.at(value)}H${right}`;
        drawText(text, left - APART, y.at(value), "end", TICK_SIZE, "--quiet", labels).classList.add("y");
      }
    }
    const xLabels = make("g", { class: "x" }, labels);
    drawTimesOrValues(x.ticks, x, layout.xaxis.side === "top" ? margin.t - 10 : bottom + 14, width, xLabels);
    // What an axis counts: above the plot for what goes up, and at the right end below what goes to the right.
    for (const key of keys) if (layout[key].title) drawText(layout[key].title, 0, 7, "start", TICK_SIZE, "--quiet", labels);
    const { title, side } = layout.xaxis;
    if (title && side === "top") drawText(title, left, 7, "start", TICK_SIZE, "--quiet", labels);
    else if (title) drawText(title, right, height - 7, "end", TICK_SIZE, "--quiet", labels);
    for (const { x0, x1, fillcolor } of layout.shapes ?? []) {
      make("path", { d: box(x.at(x0), margin.t, Math.max(1, x.at(x1) - x.at(x0)), bottom - margin.t), style: `fill: ${tint(fillcolor)}` }, svg);
    }
    make("path", { d: grid, style: "stroke: var(--grid); fill: none" }, svg);
    plot.marks = make("g", { class: "marks" }, svg);
    const stacks = new Map();
    for (const trace of traces) {
      const scales = { x, y: axes[trace.yaxis ?? "y"] };
      if (trace.type === "bar") drawBars(trace, scales, stacks, isStacked, plot);
      else if (trace.mode === "lines") drawLine(trace, scales, plot);
      else drawPoints(trace, scales, plot);
    }
    // Fonts differ in width by a fifth and more: where a line doesn't fit, all texts get smaller.
    const notes = (layout.annotations ?? []).map((note) => wholeName(note, right - left)), most = notes.length ? longestLine(notes) : 0;
    const size = most > right - left ? Math.max(SMALLEST, 12 * (right - left) / most) : 12;
    for (const note of notes) {
      const at = note.yref === "y" ? axes.y.at(note.y) : bottom - (bottom - margin.t) * note.y - 8;
      const anchor = note.xanchor === "right" ? "end" : "start";
      const text = drawText(note.text, left + (right - left) * note.x, at, anchor, size, note.font.color, svg);
      text.classList.add("note");
      if (note.hovertext) plot.hits.push([left, at - 8, measure(note.text, size), 16, note.hovertext]);
    }
    holder.querySelector("svg")?.remove();
    holder.prepend(svg);
    holder.onpointermove = (event) => showTip(event, holder, plot.hits, scale);
    holder.onpointerleave = () => tip.remove();
  }

  // What is below the mouse, as text: nothing in it is read as HTML.
  const tip = document.createElement("div");
  tip.className = "tip";
  function showTip(event, holder, hits, scale) {
    const frame = holder.getBoundingClientRect();
    const x = (event.clientX - frame.left) / scale, y = (event.clientY - frame.top) / scale;
    let best, least = NEAR;
    for (const hit of hits) {
      const [left, top, width, height] = hit;
      const far = Math.hypot(Math.max(left - x, 0, x - left - width), Math.max(top - y, 0, y - top - height));
      if (far < least || (far === 0 && least === 0)) [best, least] = [hit, far];
    }
    if (!best) return tip.remove();
    tip.textContent = best[4];
    holder.append(tip);
    const room = holder.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(x + 12, room))}px`;
    tip.style.top = `${y + 16}px`;
  }

  // Tables are sorted by what people read: "1 min 53 s" by its seconds; unknown cells stay last.
  const UNITS = { ms: 0.001, s: 1, min: 60, h: 3600, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
  const isWords = (heading) => ["text", "command", "time", "phase"].includes(heading.className);
  function amount(text) {
    const parts = [...text.matchAll(/(-?[\d.,]+)\s*([a-zA-Z]*)/g)];
    return parts.reduce((sum, [, digits, unit]) => sum + Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? 1), 0);
  }
  function sortBy(heading) {
    const headings = [...heading.parentElement.children], place = headings.indexOf(heading);
    const body = heading.closest("table").tBodies[0], words = isWords(heading);
    // The largest number first, then the other way round.
    const first = words ? "ascending" : "descending", second = words ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? second : first;
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => {
      const text = row.cells[place].textContent;
      return { row, unknown: text === "-", key: words ? text : amount(text) };
    });
    rows.sort((a, b) => {
      if (a.unknown || b.unknown) return a.unknown - b.unknown;
      return sign * (words ? a.key.localeCompare(b.key, "en", { numeric: true }) : a.key - b.key);
    });
    body.append(...rows.map(({ row }) => row));
  }
  for (const heading of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(heading));
    heading.append(button);
  }
  // The rows of a long table are no part of the page until somebody opens it.
  function fill(table) {
    const rows = table.querySelector("template");
    if (rows) rows.replaceWith(rows.content);
  }
  for (const table of document.querySelectorAll("details")) table.addEventListener("toggle", () => fill(table));

  // Of the sentence, numbers and their units stay in one line.
  for (const lead of document.querySelectorAll(".lead")) {
    lead.textContent = lead.textContent.replace(/(\d) (?=(?:ms|s|min|h|%)(?!\w))/g, "$1\u00a0");
  }

  // On paper, plots are as wide as it, and those higher than a page shrink to one.
  const PAGE_HEIGHT = 860;
  const plots = document.querySelectorAll("[data-figure]");
  const root = document.documentElement;
  // data-drawn says that nothing will move any more.
  function draw(isPaper = false) {
    for (const plot of plots) drawOne(plot, isPaper);
    if (!isPaper) root.dataset.drawn = dark.matches ? "dark" : "light";
  }

  let opened = [];
  // What is printed is what is there when a listener returns: nothing may be waited for.
  addEventListener("beforeprint", () => {
    delete root.dataset.drawn;
    root.classList.add("paper");
    draw(true);
    // Other tables are printed if they are open; these are all that their section has.
    opened = [...document.querySelectorAll("section:not(:has(figure)) details:not([open])")];
    for (const table of opened) fill(table), table.open = true;
  });
  addEventListener("afterprint", () => {
    root.classList.remove("paper");
    for (const table of opened) table.open = false;
    draw();
  });
  // A phone that is turned has another width.
  let width = innerWidth, timer;
  addEventListener("resize", () => {
    delete root.dataset.drawn;
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (innerWidth !== width) draw();
      width = innerWidth;
      root.dataset.drawn = dark.matches ? "dark" : "light";
    }, 150);
  });
  // Colours follow by themselves.
  dark.addEventListener("change", () => { root.dataset.drawn = dark.matches ? "dark" : "light"; });
  draw();
})();
