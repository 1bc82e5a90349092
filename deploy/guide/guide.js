// The theme gives its search dialog no name for those who hear the page.
document.querySelector('[data-md-component="search"]')?.setAttribute("aria-label", "Search");
