// Samples get a button that copies them, and tables of prose become cards on a phone (roost.css).
"use strict";
(() => {
  // Of a console's sample, the commands alone are copied.
  function commandsOf(text) {
    const lines = text.split("\n");
    const commands = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    return commands.length ? commands.join("\n") : text.trimEnd();
  }

  function addCopyButton(sample) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(commandsOf(sample.querySelector("pre").textContent));
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    sample.append(button);
  }

  // Characters of a cell's text from which on a column is prose, not names or numbers.
  const PROSE = 25;

  function isProse(table) {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    const columns = table.tHead?.rows[0]?.cells.length ?? 0;
    return [...Array(columns).keys()].some((column) => {
      const lengths = rows.map((row) => row.cells[column]?.textContent.length ?? 0).sort((one, other) => one - other);
      return lengths[Math.floor(lengths.length / 2)] > PROSE;
    });
  }

  // A table that is drawn as blocks is none to a screen reader, unless its parts say what they are.
  function makeCards(table) {
    table.classList.add("cards");
    table.setAttribute("role", "table");
    const headings = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    for (const part of [table.tHead, ...table.tBodies]) part.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, column) => {
        cell.setAttribute("role", cell.closest("thead") ? "columnheader" : "cell");
        if (column && headings[column]) cell.dataset.label = headings[column];
      });
    }
  }

  addEventListener("DOMContentLoaded", () => {
    if (navigator.clipboard) for (const sample of document.querySelectorAll("div.highlight")) addCopyButton(sample);
    for (const table of document.querySelectorAll(".bd-article table")) if (isProse(table)) makeCards(table);
  });
})();
