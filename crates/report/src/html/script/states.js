// The table beneath the lanes: what would surely and what would possibly be in PM.
var STATE_WORDS = { dirty: "dirty", flushed: "flushed, not fenced", sure: "guaranteed", idle: "not stored to yet" };
function element(tag, className, text) {
  var made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
function writeChip(model, write, fate) {
  var chip = element("span", "write" + (write.guilty ? " guilty" : "") + (fate ? " " + fate : ""));
  chip.textContent = (fate === "there" ? "✓ " : fate === "lost" ? "✗ " : "") + model.writeName(write);
  chip.title = "event " + write.event + (write.place === undefined ? "" : ", " + model.placeName(write.place)) +
    (fate === "there" ? "; in PM after this crash" : fate === "lost" ? "; not in PM after this crash" : "");
  return chip;
}
var MOST = 6;
function stateRow(model, lane, place) {
  var step = model.step(lane, place), state = stateOf(step), row = element("tr", lane.lane.side);
  row.dataset.state = state;
  var name = element("th", "", laneName(lane));
  name.scope = "row";
  name.appendChild(element("small", "", laneOffset(lane)));
  row.appendChild(name);
  var cell = element("td"), chip = element("span", "chip-state " + state);
  chip.appendChild(element("i"));
  chip.appendChild(document.createTextNode(STATE_WORDS[state]));
  cell.appendChild(chip);
  row.appendChild(cell);
  var surely = element("td"), sure = lane.stores.slice(Math.max(0, step.guaranteed - 3), step.guaranteed);
  if (step.guaranteed > sure.length) surely.appendChild(element("span", "dim", (step.guaranteed - sure.length) + " earlier, "));
  sure.forEach(function (write) { surely.appendChild(writeChip(model, write)); });
  if (!step.guaranteed) surely.appendChild(element("span", "dim", "what was there before"));
  row.appendChild(surely);
  var possibly = element("td"), pending = lane.stores.slice(step.guaranteed, step.stored);
  var guilty = pending.findIndex(function (write) { return write.guilty; });
  var from = guilty >= MOST ? guilty - MOST + 1 : 0;
  if (from > 0) possibly.appendChild(element("span", "dim", from + " earlier, "));
  pending.slice(from, from + MOST).forEach(function (write, number) {
    var fate = place !== model.crash ? "" : step.guaranteed + from + number < lane.lane.in_pm ? "there" : "lost";
    possibly.appendChild(writeChip(model, write, fate));
  });
  if (pending.length > from + MOST) possibly.appendChild(element("span", "dim", "and " + (pending.length - from - MOST) + " more"));
  if (!pending.length) possibly.appendChild(element("span", "dim", "nothing else"));
  row.appendChild(possibly);
  return row;
}
function count(number, what) { return number.toLocaleString("en") + " " + what + (number === 1 || number === 1n ? "" : "s"); }
function where(model, place) {
  var next = model.events[place], here = model.states(place), text = element("span");
  text.appendChild(element("b", "", place === model.crash ? "⚡ Where it failed: " : "If power failed here: "));
  var before = next ? "before event " + next.id.toLocaleString("en") + ", " + next.what + (model.threads > 1 ? " of thread " + next.thread : "") + (next.place === undefined ? "" : " in " + model.placeName(next.place)) : "after the last event of this window";
  var states = String(here.states), many = states.length > 15 ? "about 10^" + (states.length - 1) + " states" : count(here.states, "state");
  var left = here.dirty === 0 ? "Everything on the lines followed is guaranteed." : here.dirty + " of the " + count(model.lanes.filter(function (lane) { return lane.stores.length; }).length, "line") + " followed " + (here.dirty === 1 ? "is" : "are") + " not guaranteed: " + many + " possible.";
  text.appendChild(document.createTextNode(before + ". " + left));
  return text;
}
