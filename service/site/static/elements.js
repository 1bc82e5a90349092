// Elements from data. Text always becomes a text node: what a table holds is never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("a.button", {href: "/"}, "Home"). `onX` members listen, others are attributes. */
export function h(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  return filled(document.createElement(tag), classes, attributes, children);
}

/** The same of an SVG picture. */
export function s(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  return filled(document.createElementNS(SVG, tag), classes, attributes, children);
}

function filled(element, classes, attributes, children) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put new content into an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Tell who listens to the page, and does not see it, what has happened. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

let count = 0;

/** An id that no other element of the page has. */
export function freshId(word) {
  count += 1;
  return `${word}-${count}`;
}
