// Draws the part of the lanes that is in view. The canvas is as wide as the view, not as the time line.
var HEAD = 34, ROW = 32, PAD = 14;
function colours(element) {
  var style = getComputedStyle(element), result = {};
  ["dirty", "flushed", "sure", "idle", "fence", "ink", "soft", "line", "bad", "missing", "present", "card", "accent", "sunk"].forEach(function (name) {
    result[name] = style.getPropertyValue("--" + name).trim();
  });
  return result;
}
function hatch(context, colour, ground) {
  var tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  var to = tile.getContext("2d");
  to.fillStyle = ground;
  to.fillRect(0, 0, 6, 6);
  to.strokeStyle = colour;
  to.lineWidth = 2.4;
  to.beginPath();
  [-6, 0, 6].forEach(function (shift) { to.moveTo(shift - 1, 7); to.lineTo(shift + 7, -1); });
  to.stroke();
  return context.createPattern(tile, "repeat");
}
function draw(view) {
  var model = view.model, canvas = view.canvas, width = view.width, height = HEAD + view.rows.length * ROW + 6;
  var ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  var to = canvas.getContext("2d"), colour = view.colours, left = view.plot.scrollLeft;
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  to.clearRect(0, 0, width, height);
  function x(place) { return PAD + place * view.step - left; }
  var first = Math.max(0, Math.floor((left - PAD) / view.step) - 1), last = Math.min(model.count, Math.ceil((left + width) / view.step) + 1);
  var fill = { dirty: colour.dirty, flushed: hatch(to, colour.flushed, colour.card), sure: colour.sure, idle: colour.idle };
  to.font = "10.5px system-ui, sans-serif";
  // Numbers of events, where they have room.
  to.fillStyle = colour.soft;
  var every = Math.max(1, Math.ceil(72 / view.step));
  for (var tick = Math.ceil(first / every) * every; tick < last; tick += every) {
    if (Math.abs(x(tick) - x(model.crash)) > 40) to.fillText(model.events[tick].id.toLocaleString("en"), x(tick) + 1, 12);
  }
  // Fences and operations, behind everything.
  for (var i = first; i < last; i++) {
    var event = model.events[i], at = x(i + 0.5);
    if (/fence|locked|sync/.test(event.what)) {
      to.strokeStyle = colour.fence;
      to.globalAlpha = 0.75;
      to.lineWidth = 1.4;
      to.beginPath(); to.moveTo(at, HEAD - 6); to.lineTo(at, height - 4); to.stroke();
      to.globalAlpha = 1;
    } else if (event.operation !== undefined) {
      to.strokeStyle = colour.accent;
      to.setLineDash([3, 3]);
      to.beginPath(); to.moveTo(at, 18); to.lineTo(at, height - 4); to.stroke();
      to.setLineDash([]);
      if (/begins/.test(event.what)) { to.fillStyle = colour.accent; to.fillText("op " + event.operation, at + 3, 27); }
    }
  }
  view.rows.forEach(function (lane, row) {
    var middle = HEAD + row * ROW + ROW / 2;
    to.strokeStyle = colour.line;
    to.lineWidth = 1;
    to.beginPath(); to.moveTo(0, HEAD + row * ROW + 0.5); to.lineTo(width, HEAD + row * ROW + 0.5); to.stroke();
    for (var s = model.stepIndex(lane, first); s < lane.steps.length && lane.steps[s].at <= last; s++) {
      var step = lane.steps[s], state = stateOf(step), next = lane.steps[s + 1];
      var from = Math.max(-20, s === 0 ? x(0) - PAD : x(step.at - 0.5)), upto = Math.min(width + 20, next ? x(next.at - 0.5) : x(model.count) + PAD);
      to.fillStyle = fill[state];
      if (state === "idle") to.fillRect(from, middle - 1, upto - from, 2);
      else if (state === "sure") to.fillRect(from, middle - 3, upto - from, 6);
      else to.fillRect(from, middle - 8, upto - from, 16);
    }
  });
  marks(view, to, x, first, last);
  if (first === 0) view.rows.forEach(function (lane, row) {
    // A store of the finding that lies before the window.
    var early = lane.lane.pending.some(function (write) { return write.guilty; });
    if (early) dot(to, x(0) - PAD / 2, HEAD + row * ROW + ROW / 2, 5, lane.lane.side === "present" ? colour.present : colour.missing, colour.card, 2);
  });
  power(to, x(model.crash), height, colour.bad, 2.6, true);
  if (view.place !== model.crash) power(to, x(view.place), height, colour.ink, 2, false);
}
// Stores and flushes on their lanes.
function marks(view, to, x, first, last) {
  var model = view.model, colour = view.colours, rowOf = new Map();
  view.rows.forEach(function (lane, row) { rowOf.set(lane.number, row); });
  var small = view.step < 5;
  for (var i = first; i < last; i++) {
    var event = model.events[i], at = x(i + 0.5);
    (event.writes || []).forEach(function (write) {
      if (!rowOf.has(write.lane)) return;
      var middle = HEAD + rowOf.get(write.lane) * ROW + ROW / 2, side = model.lanes[write.lane].lane.side;
      if (write.guilty) dot(to, at, middle, 6.5, side === "present" ? colour.present : colour.missing, colour.card, 2.4);
      else dot(to, at, middle, small ? 1.6 : 3.6, colour.card, colour.ink, small ? 0 : 1.5);
    });
    if (event.lane !== undefined && rowOf.has(event.lane)) {
      var top = HEAD + rowOf.get(event.lane) * ROW + ROW / 2 - 4;
      to.fillStyle = colour.ink;
      to.beginPath(); to.moveTo(at - 5, top); to.lineTo(at + 5, top); to.lineTo(at, top + 9); to.closePath(); to.fill();
    }
  }
}
function dot(to, x, y, radius, fill, stroke, width) {
  to.beginPath();
  to.arc(x, y, radius, 0, 7);
  to.fillStyle = fill;
  to.fill();
  to.strokeStyle = stroke;
  to.lineWidth = width;
  if (width) to.stroke();
}
function power(to, at, height, colour, width, flag) {
  to.strokeStyle = to.fillStyle = colour;
  to.lineWidth = width;
  to.beginPath(); to.moveTo(at, flag ? 20 : 26); to.lineTo(at, height); to.stroke();
  if (flag) {
    to.beginPath(); to.moveTo(at + 4, 3); to.lineTo(at - 5, 14); to.lineTo(at, 14); to.lineTo(at - 3, 23); to.lineTo(at + 6, 11); to.lineTo(at + 1, 11); to.closePath(); to.fill();
  } else {
    to.beginPath(); to.moveTo(at - 6, 18); to.lineTo(at + 6, 18); to.lineTo(at, 27); to.closePath(); to.fill();
  }
}
