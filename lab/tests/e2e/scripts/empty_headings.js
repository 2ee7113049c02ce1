// Headings that say nothing.
return [...document.querySelectorAll("h1, h2, h3, h4")].filter((one) => !one.textContent.trim()).map((one) => one.outerHTML);
