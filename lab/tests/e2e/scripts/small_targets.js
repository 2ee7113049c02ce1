// What can be clicked and is lower or narrower than 24 px; links within a text are as high as its lines.
return [...document.querySelectorAll("a[href], button, summary, input, select, [role=button]")]
  .filter((one) => one.checkVisibility() && !(one.matches("p a, td a, small a, li a") && one.closest("p, td, small, li").innerText.trim() !== one.innerText.trim()))
  .map((one) => ({ one, box: one.getBoundingClientRect() }))
  .filter(({ box }) => box.width && (box.width < 23.9 || box.height < 23.9))
  .map(({ one, box }) => `${one.outerHTML.slice(0, 100)}: ${box.width.toFixed(1)} x ${box.height.toFixed(1)} px`);
