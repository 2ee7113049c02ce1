// Of each plot: its width, and how many marks (bars, points, lines) of some size are drawn in it.
return [...document.querySelectorAll("[data-figure]")].map((plot) => ({
  key: plot.dataset.figure,
  width: plot.querySelector("svg.drawn")?.getBoundingClientRect().width ?? 0,
  marks: [...plot.querySelectorAll(".marks path")].filter((mark) => {
    const box = mark.getBoundingClientRect();
    return box.width > 0 || box.height > 0;
  }).length,
}));
