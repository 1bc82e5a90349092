// The list of a dataset's rules between columns, inferred or added by users.

import { segments, writing } from "./components.js";
import { tried } from "./dataset.js";
import { fill, h } from "./elements.js";
import { count, percent } from "./words.js";

const KEEPS = [["soft", "Soft"], ["hard", "Hard"], ["off", "Off"]];

/** Returns the list of rules, each of which can be set to soft, hard or off. */
export function ruleList(dataset, found, change) {
  const told = h("div");
  const keep = (at, word) => change({ rules: found.map(({ rule }, i) => (i === at ? { ...rule, keep: word } : rule)) });
  const again = writing(h("button.small", { type: "button", onclick: () => tried(told, again, () => change({ rules: null })) }, "Infer rules again"));
  const none = "No rules were inferred: the service found no formula, inequality or functional dependency between these columns.";
  return h("section.stack", { "aria-label": "Rules" },
    h("div.row.ends", {}, h("h2", {}, "Rules"), again), h("p.soft", {}, "A rule is a relation between columns. Soft: synthetic rows satisfy it as often as the rows of the table. Hard: every synthetic row satisfies it. Off: the model ignores it. “a determines b” means that rows with the same a have the same b."),
    found.length ? h("ul.listed", {}, found.map((one, i) => ruleLine(one, (word) => keep(i, word)))) : h("p.soft", {}, none),
    ruleForm(dataset, (rule, button) => tried(told, button, () => change({ rules: [...found.map((one) => one.rule), rule] }))), told);
}

const FORMS = [
  "total == net + tax",
  "shipped >= ordered",
  "`unit price` * quantity == total",
  "determines(country; currency)",
  "is_missing(refund) if is_missing(returned)",
  "age == years(born, \"2026-01-31\")",
  "start < end",
  "combinations(city, country)",
];

/** Returns a form that adds a rule; the service then counts the rows that satisfy it. */
function ruleForm(dataset, add) {
  const forms = h("datalist", { id: "rule-forms" }, FORMS.map((text) => h("option", { value: text })));
  const text = h("input", { "aria-label": "Rule", placeholder: `for example ${FORMS[0]}`, size: 44, list: "rule-forms", required: true });
  const keep = h("select", { "aria-label": "Soft or hard" }, KEEPS.slice(0, 2).map(([word, label]) => h("option", { value: word }, label)));
  const button = writing(h("button", { type: "submit" }, "Add rule"));
  return h("form.row", { onsubmit: (event) => { event.preventDefault(); add({ rule: text.value, keep: keep.value }, button); } }, text, forms, keep, button);
}

function ruleLine(found, keep) {
  const broken = found.exceptions.map((one) => (one.line === null ? `row ${one.row}` : `line ${one.line}`));
  const share = found.kept / found.rows;
  const told = h("div");
  const choice = h("div");
  const shown = () => fill(choice, segments(`Soft, hard or off: ${found.formula}`, KEEPS, found.rule.keep, (word) => tried(told, null, async () => {
    try {
      await keep(word);
    } catch (error) {
      shown();  // shows the previous choice, because the new one was refused
      throw error;
    }
  })));
  shown();
  return h("li", {}, h("div", {},
    h("div", {}, h("strong", {}, found.formula)),
    h("div.tiny.soft", {}, found.rows ? `Satisfied by ${count(found.kept)} of ${count(found.rows)} rows (${percent(share, share === 1 ? 0 : 1)})` : "Applies to no row",
      broken.length ? `; exceptions: ${broken.slice(0, 4).join(", ")}${found.rows - found.kept > 4 ? " …" : ""}` : ""),
    told),
  choice);
}
