// Draws the figures of the page with Plotly, in the colours of the reader's scheme.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const hasMouse = matchMedia("(pointer: fine)").matches;
  const config = { displayModeBar: false, responsive: true, displaylogo: false };

  // Colours are given as names of CSS variables, under these keys only: texts are never touched.
  const colourKeys = new Set(["color", "fillcolor", "gridcolor", "linecolor", "tickcolor", "bgcolor", "bordercolor"]);
  function paint(value, style) {
    if (Array.isArray(value)) return value.map((one) => paint(one, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => {
      const isName = colourKeys.has(key) && typeof one === "string" && one.startsWith("--");
      return [key, isName ? style.getPropertyValue(one).trim() : paint(one, style)];
    }));
  }

  async function draw() {
    const style = getComputedStyle(document.documentElement);
    for (const plot of document.querySelectorAll("[data-figure]")) {
      const figure = paint(figures[plot.dataset.figure], style);
      // A finger on a plot scrolls the page.
      figure.layout.dragmode = hasMouse ? "zoom" : false;
      await Plotly.react(plot, figure.data, figure.layout, config);
    }
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  }

  dark.addEventListener("change", draw);
  draw();
})();
