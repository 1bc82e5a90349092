// An example table, generated in the browser: orders of a made-up café. It contains categories, dates,
// missing cells, an identifier, a product of two columns, and columns that depend on each other.

const DRINKS = [["Espresso", 2.4], ["Flat white", 3.9], ["Filter", 3.1], ["Tea", 2.8], ["Iced tea", 3.4], ["Cake", 4.5]];
const PLACES = ["Harbour", "Station", "Old town"];

/** Returns the CSV text of the example, which is always the same. */
export function exampleTable(rows = 1200) {
  const draw = generator(20261123);
  const lines = ["order,day,place,product,quantity,price,total,temperature,waiting_minutes,member,rating"];
  for (let i = 0; i < rows; i += 1) lines.push(order(i, draw).join(","));
  return `${lines.join("\n")}\n`;
}

function order(i, draw) {
  const day = Math.floor(draw() * 364);
  const temperature = 12 - 11 * Math.cos((2 * Math.PI * day) / 365) + 3 * bell(draw);
  const place = PLACES[draw() < 0.5 ? 0 : draw() < 0.6 ? 1 : 2];
  const warm = temperature > 17;
  const [product, price] = DRINKS[warm && draw() < 0.45 ? 4 : Math.floor(draw() * DRINKS.length)];
  const quantity = 1 + Math.floor(5 * draw() ** 2.5);
  const waiting = Math.max(0.5, 2 + 1.4 * quantity + (place === "Station" ? 3 : 0) + 1.2 * bell(draw));
  const member = draw() < (place === "Old town" ? 0.6 : 0.3);
  const rating = draw() < 0.25 ? "" : Math.min(5, Math.max(1, Math.round(5.2 - 0.22 * waiting + 0.7 * bell(draw))));
  const date = new Date(Date.UTC(2025, 0, 1 + day)).toISOString().slice(0, 10);
  return [`C-${10_000 + 7 * i}`, date, place, product, quantity, price.toFixed(2), (quantity * price).toFixed(2),
    temperature.toFixed(1), waiting.toFixed(1), member ? "yes" : "no", rating];
}

/** Returns an approximately normal number, as a sum of uniform ones. */
function bell(draw) {
  return draw() + draw() + draw() + draw() + draw() + draw() - 3;
}

/** Returns a generator of uniform numbers in [0, 1); a linear congruential one suffices for an example. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
