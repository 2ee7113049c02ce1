// Every piece of text that can be seen, with its box: SVG texts whole, others line by line.
const found = [];
const put = (text, box, kind, plot) => {
  if (box.width > 0 && box.height > 0) {
    found.push({text: text.trim().slice(0, 60), left: box.left, right: box.right, top: box.top + scrollY,
                bottom: box.bottom + scrollY, kind, plot});
  }
};
for (const text of document.querySelectorAll(".plot svg text")) {
  const style = getComputedStyle(text);
  if (text.textContent.trim() && style.visibility !== "hidden" && style.display !== "none" && style.opacity !== "0") {
    put(text.textContent, text.getBoundingClientRect(), "plot", text.closest(".plot").dataset.figure);
  }
}
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  const hidden = "script, style, svg, noscript, details:not([open]) > :not(summary)";
  if (!node.data.trim() || parent.closest(hidden)) continue;
  const scroller = parent.closest(".scroll"), limits = scroller && scroller.getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (limits && (box.bottom > limits.bottom || box.right > limits.right)) continue;
    put(node.data, box, "page", "");
  }
}
return found;
