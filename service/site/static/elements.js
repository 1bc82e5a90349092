// Functions that create elements. Text always becomes a text node, so that texts of a table are never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an HTML element, as in h("a.button", {href: "/"}, "Home"). Members `onX` are event listeners, others are attributes. */
export function h(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  return filled(document.createElement(tag), classes, attributes, children);
}

/** Returns an SVG element, with the same arguments as `h`. */
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

/** Replaces the content of an element, and returns the element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Announces a text to screen readers. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

let count = 0;

/** Returns an element id that is unique in the page. */
export function freshId(word) {
  count += 1;
  return `${word}-${count}`;
}
