// What is known of each lane at each place of its time line. Place p is after p events, before event number p.
function Model(data) {
  var model = this;
  this.data = data;
  this.events = data.events;
  this.count = data.events.length;
  this.lanes = data.lanes.map(function (lane, number) {
    return { number: number, lane: lane, stores: lane.pending.slice(), steps: [{ at: 0, stored: lane.pending.length, asked: lane.asked, guaranteed: 0 }] };
  });
  this.threads = new Set(data.events.map(function (event) { return event.thread; })).size;
  this.crash = this.count;
  for (var i = this.count - 1; i >= 0 && data.events[i].id >= data.crash; i--) this.crash = i;
  data.events.forEach(function (event, index) {
    (event.writes || []).forEach(function (write) { model.lanes[write.lane].stores.push(write); });
    (event.marks || []).forEach(function (mark) {
      model.lanes[mark.lane].steps.push({ at: index + 1, stored: mark.stored, asked: mark.asked, guaranteed: mark.guaranteed });
    });
  });
  this.nameLanes();
}
// The newest step of a lane at a place, by bisection.
Model.prototype.stepIndex = function (lane, place) {
  var steps = lane.steps, low = 0, high = steps.length - 1;
  while (low < high) {
    var middle = (low + high + 1) >> 1;
    if (steps[middle].at <= place) low = middle; else high = middle - 1;
  }
  return low;
};
Model.prototype.step = function (lane, place) { return lane.steps[this.stepIndex(lane, place)]; };
function stateOf(step) {
  if (step.guaranteed >= step.stored) return step.stored ? "sure" : "idle";
  return step.asked >= step.stored ? "flushed" : "dirty";
}
// How many states a power failure there could leave.
Model.prototype.states = function (place) {
  var model = this, product = 1n, dirty = 0;
  this.lanes.forEach(function (lane) {
    var step = model.step(lane, place), pending = step.stored - step.guaranteed;
    if (pending > 0) { dirty += 1; product *= BigInt(pending + 1); }
  });
  return { dirty: dirty, states: product };
};
Model.prototype.placeName = function (number) {
  if (number === undefined || number === null) return "";
  var place = this.data.places[number], frame = this.data.frames[place.frames[place.own]];
  var file = frame.file ? frame.file.split("/").pop() + ":" + frame.line : frame.module + "+0x" + frame.address.toString(16);
  return shortName(frame.function || "?") + " (" + file + ")";
};
// Of a path of modules and types only the end: it stands in little room.
function shortName(name) { return /[<(]/.test(name) ? name : name.split("::").slice(-2).join("::"); }
// What a write put there, as short as it can be said.
Model.prototype.writeName = function (write) {
  var place = write.place === undefined ? null : this.data.places[write.place];
  var name = place && place.name ? place.name : "+" + write.start;
  return name + " = " + valueOf(write.bytes);
};
function valueOf(hex) {
  var bytes = (hex.match(/../g) || []).map(function (pair) { return parseInt(pair, 16); });
  var end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  if (end === 0) return bytes.length > 8 ? "0 (" + bytes.length + " bytes)" : "0";
  var text = bytes.slice(0, end);
  if (end > 2 && text.every(function (b) { return b >= 32 && b < 127; })) return JSON.stringify(String.fromCharCode.apply(null, text.slice(0, 24))) + (end > 24 ? "…" : "");
  if (bytes.length <= 8) {
    var number = 0n;
    for (var i = bytes.length - 1; i >= 0; i--) number = number * 256n + BigInt(bytes[i]);
    return number < 65536n ? String(number) : "0x" + number.toString(16);
  }
  return hex.slice(0, 16) + "… (" + bytes.length + " bytes)";
}
// A line that the source has no name for is called after the code that stores to it.
Model.prototype.nameLanes = function () {
  var model = this;
  this.lanes.forEach(function (lane) {
    var store = lane.stores.find(function (write) { return write.guilty; }) || lane.stores[0];
    lane.name = lane.lane.names.join(", ") || (store && model.placeName(store.place)) || "line";
  });
};
function laneName(lane) { return lane.name; }
function laneOffset(lane) { return lane.lane.pool + " + 0x" + lane.lane.offset.toString(16); }
