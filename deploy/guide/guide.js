// The theme gives its search dialog no name for those who hear the page.
document.querySelector('[data-md-component="search"]')?.setAttribute("aria-label", "Search");

// Tables that are wider than the screen scroll: by keys, too.
function reachTables() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("load", reachTables);
addEventListener("resize", reachTables);
