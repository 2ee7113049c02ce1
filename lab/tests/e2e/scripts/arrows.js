// Of each arrow: its kind and looks, and what its ends touch.
const board = document.getElementById('board').getBoundingClientRect();
const isIn = (x, y, box) => x + board.left >= box.left && x + board.left <= box.right
  && y + board.top >= box.top - 1 && y + board.top <= box.bottom + 1;
const boxes = (selector) => [...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect());
return [...document.querySelectorAll('#arrows line')].map((line) => {
  const at = (name) => Number(line.getAttribute(name));
  const style = getComputedStyle(line);
  const on = (n, all) => all.findIndex((box) => isIn(at(`x${n}`), at(`y${n}`), box));
  return {kind: line.classList[1], dash: style.strokeDasharray, head: line.getAttribute('marker-end'),
    to: on(2, boxes('#nodes > li')), fresh: on(2, boxes('#nodes .fresh')) >= 0,
    by: on(1, boxes('#nodes .fresh')) >= 0, colour: style.stroke};
});
