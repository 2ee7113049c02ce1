// Draws the page's figures with Plotly, in the colours of the reader's scheme.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const hasMouse = matchMedia("(pointer: fine)").matches;
  const config = { displayModeBar: false, responsive: true, displaylogo: false };

  // Colours are names of CSS variables, under these keys only: texts are never changed.
  const colourKeys = new Set(["color", "fillcolor", "gridcolor", "linecolor", "tickcolor", "bgcolor", "bordercolor"]);
  function paint(value, style) {
    if (Array.isArray(value)) return value.map((item) => paint(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => {
      const isName = colourKeys.has(key) && typeof item === "string" && item.startsWith("--");
      return [key, isName ? style.getPropertyValue(item).trim() : paint(item, style)];
    }));
  }

  async function draw() {
    const style = getComputedStyle(document.documentElement);
    for (const plot of document.querySelectorAll("[data-figure]")) {
      const figure = paint(figures[plot.dataset.figure], style);
      // On a touch screen, a plot scrolls the page.
      figure.layout.dragmode = hasMouse ? "zoom" : false;
      await Plotly.react(plot, figure.data, figure.layout, config);
    }
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  }

  dark.addEventListener("change", draw);
  draw();
})();
