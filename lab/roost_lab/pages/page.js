// Draws the page's figures with Plotly, in the colours of the reader's scheme, with texts that fit in the reader's font.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const hasMouse = matchMedia("(pointer: fine)").matches;
  const config = { displayModeBar: false, displaylogo: false };
  // px: least room between texts in a line, smallest type, room for the labels of the values' axis.
  const APART = 6, SMALLEST = 8, AXIS_WIDTH = 40;

  // Colours are names of CSS variables, under these keys only: texts are never changed.
  const colourKeys = new Set(["color", "fillcolor", "gridcolor", "linecolor", "tickcolor", "bgcolor", "bordercolor"]);
  function paint(value, style) {
    if (Array.isArray(value)) return value.map((item) => paint(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => {
      if (!colourKeys.has(key) || (typeof item !== "string" && !Array.isArray(item))) return [key, paint(item, style)];
      const tint = (name) => name.startsWith("--") ? style.getPropertyValue(name).trim() : name;
      return [key, Array.isArray(item) ? item.map(tint) : tint(item)];
    }));
  }

  // The width of a text in a plot, in px.
  const ruler = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const ruled = ruler.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "text"));
  ruler.setAttribute("style", "position: absolute; width: 0; height: 0; visibility: hidden");
  document.body.append(ruler);
  function measure(text, size) {
    ruled.setAttribute("style", `font-size: ${size}px; white-space: pre`);
    ruled.innerHTML = text;
    return ruled.getComputedTextLength();
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

  // Fonts differ in width by a fifth and more: where a line doesn't fit, all texts get smaller.
  function fitNotes({ layout }) {
    const notes = layout.annotations ?? [];
    const room = layout.width - layout.margin.l - layout.margin.r - (layout.yaxis?.visible === false ? 0 : AXIS_WIDTH);
    const most = longestLine(notes);
    if (most > room) for (const note of notes) note.font.size = Math.max(SMALLEST, note.font.size * room / most);
  }

  // Of labels on one axis that would touch, the ends stay, and each that is clear of those before it.
  function thinLabels(plot) {
    for (const axis of plot.querySelectorAll(".xaxislayer-above, .xaxislayer-below")) {
      const labels = [...axis.querySelectorAll("text")];
      for (const label of labels) label.style.visibility = "";
      const boxes = labels.map((label) => [label, label.getBoundingClientRect()]).sort((a, b) => a[1].left - b[1].left);
      let end = -Infinity;
      boxes.forEach(([label, box], index) => {
        const last = boxes[boxes.length - 1][1];
        const touches = box.left < end || (index > 0 && box !== last && box.right + APART > last.left);
        if (touches) label.style.visibility = "hidden";
        else end = box.right + APART;
      });
    }
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

  // On paper, plots are as wide as it, and those higher than a page shrink to one.
  const PAGE_HEIGHT = 860;
  function drawOne(plot, style, isPaper) {
    const figure = paint(figures[plot.dataset.figure], style);
    for (const trace of figure.data) if (!trace.x) Object.assign(trace, figure.common);
    const scale = isPaper ? Math.min(1, PAGE_HEIGHT / figure.layout.height) : 1;
    plot.style.zoom = scale;
    figure.layout.width = plot.parentElement.clientWidth / scale;
    // On a touch screen, a plot scrolls the page.
    figure.layout.dragmode = hasMouse ? "zoom" : false;
    fitNotes(figure);
    const done = Plotly.react(plot, figure.data, figure.layout, config);
    if (!plot.dataset.isHeard) plot.on("plotly_afterplot", () => thinLabels(plot));
    plot.dataset.isHeard = "yes";
    thinLabels(plot);
    return done;
  }

  const plots = document.querySelectorAll("[data-figure]");
  const root = document.documentElement;
  let draws = 0;
  let timer;
  // data-drawn says that nothing will move any more.
  function settle() {
    if (!draws && !timer) root.dataset.drawn = dark.matches ? "dark" : "light";
  }
  async function draw() {
    delete root.dataset.drawn;
    draws += 1;
    const style = getComputedStyle(root);
    for (const plot of plots) await drawOne(plot, style, false);
    draws -= 1;
    settle();
  }

  let opened = [];
  // What is printed is what is there when a listener returns: nothing may be waited for.
  addEventListener("beforeprint", () => {
    delete root.dataset.drawn;
    root.classList.add("paper");
    const style = getComputedStyle(root);
    for (const plot of plots) drawOne(plot, style, true);
    // Other tables are printed if they are open; these are all that their section has.
    opened = [...document.querySelectorAll("section:not(:has(figure)) details:not([open])")];
    for (const table of opened) table.open = true;
  });
  addEventListener("afterprint", () => {
    root.classList.remove("paper");
    for (const table of opened) table.open = false;
    draw();
  });
  // A phone that is turned has another width.
  let width = innerWidth;
  addEventListener("resize", () => {
    delete root.dataset.drawn;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      if (innerWidth === width) return settle();
      width = innerWidth;
      draw();
    }, 150);
  });
  dark.addEventListener("change", draw);
  draw();
})();
