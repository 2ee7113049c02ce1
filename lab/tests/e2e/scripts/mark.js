// Marks a plot at its corners, and the last colour of its legend, with colours that nothing else has.
document.querySelectorAll("figure").forEach((figure, index) => {
  const plot = figure.querySelector(".plot");
  plot.style.position = "relative";
  [["left", "top"], ["right", "bottom"]].forEach((sides, corner) => {
    const mark = plot.appendChild(document.createElement("b"));
    mark.style.cssText = `position: absolute; width: 2px; height: 2px; background: rgb(${index}, ${corner}, 201);`
      + sides.map((side) => `${side}: 0`).join(";");
  });
  figure.querySelector(".legend li:last-child i")?.style.setProperty("--mark", `rgb(${index}, 2, 201)`);
});
return [...document.querySelectorAll("figure")].map((figure) => [figure.querySelector(".plot").dataset.figure,
                                                                !!figure.querySelector(".legend")]);
