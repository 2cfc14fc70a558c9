
/** The timeline: what the page holds of it, drawn at any zoom. */
function timeline() {
  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const canvas = document.getElementById("lanes");
  const place = document.getElementById("place");
  const axes = document.getElementById("axis");
  const groups = "oashmcudk";
  const [row, head, left] = [20, 26, 170];
  let axis = 0;
  let from = 0;
  let unit = 1;
  let asked = false;
  let last = -1;

  /** The cells of a row: 0 for none, else 1 + 4 * group + level. */
  function decode(text, columns) {
    const cells = new Uint8Array(columns);
    let at = 0;
    for (const [, symbol, count] of text.matchAll(/([A-Za-z.])(\d*)/g)) {
      const code = symbol.charCodeAt(0);
      const value = symbol === "." ? 0 : code < 97 ? code - 64 : code - 70;
      const end = at + (count ? Number(count) : 1);
      cells.fill(value, at, end);
      at = end;
    }
    return cells;
  }
  for (const of of data.axes) {
    for (const view of of.views) {
      view.wide = 2 ** view.scale;
      view.end = view.start + view.columns * view.wide;
      view.cells = view.cells.map((text) => decode(text, view.columns));
      view.names = view.labels.map((pairs) => {
        const names = new Map();
        for (let at = 0; at < pairs.length; at += 2) names.set(pairs[at], data.names[pairs[at + 1]]);
        return names;
      });
    }
    axes.append(new Option(of.name));
  }

  const width = () => Math.max(canvas.clientWidth - left, 50);
  const current = () => data.axes[axis];
  const side = (finding, which) => finding.sides[which][current().isTime ? 2 : 1];
  const x = (at) => left + (at - from) / unit;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name);

  /** A position in words. */
  function words(at) {
    const rounded = Math.round(at);
    if (!current().isTime) return "#" + rounded.toLocaleString("en");
    const text = (value, digits, name) => "+" + value.toFixed(digits) + " " + name;
    if (rounded < 1e6) return text(rounded / 1e3, 3, "us");
    return rounded < 1e9 ? text(rounded / 1e6, 3, "ms") : text(rounded / 1e9, 3, "s");
  }

  function limit() {
    const { start, end } = current();
    unit = Math.min(Math.max(unit, 1 / 200), Math.max((end - start) / width(), 1 / 200));
    from = Math.max(Math.min(from, end - unit * width()), start);
  }
  function whole() {
    from = current().start;
    unit = (current().end - from) / width();
    redraw();
  }
  function zoom(by, at) {
    const fixed = from + (at - left) * unit;
    unit *= by;
    limit();
    from = fixed - (at - left) * unit;
    redraw();
  }
  function move(part) {
    from += part * unit * width();
    redraw();
  }
  /** Goes to a finding so that both sides are seen. */
  function show(at) {
    const finding = data.findings[at];
    if (!finding) return;
    last = at;
    const ends = [side(finding, 0), side(finding, 1)].sort((a, b) => a - b);
    unit = Math.max((ends[1] - ends[0]) * 2, 40) / width();
    from = (ends[0] + ends[1]) / 2 - (unit * width()) / 2;
    place.textContent = finding.title;
    redraw();
  }
  function redraw() {
    limit();
    if (!asked) requestAnimationFrame(draw);
    asked = true;
  }

  function draw() {
    asked = false;
    const scale = devicePixelRatio;
    const [wide, high] = [canvas.clientWidth, head + row * data.rows.length + 4];
    canvas.style.height = high + "px";
    canvas.width = wide * scale;
    canvas.height = high * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px ui-monospace, Menlo, Consolas, monospace";
    pen.textBaseline = "middle";
    const look = { text: colour("text"), muted: colour("muted"), line: colour("line"), bg: colour("bg"),
      race: colour("missing") };
    const colours = [...groups].map((group) => colour(group));
    const to = from + unit * width();
    ruler(pen, look, high);
    data.rows.forEach((name, at) => {
      const y = head + at * row;
      pen.fillStyle = look.muted;
      pen.fillText(fit(pen, name, left - 14), 0, y + row / 2);
      pen.fillStyle = look.line;
      pen.fillRect(left, y + row - 1, wide - left, 1);
      for (const view of current().views) {
        if (view.end > from && view.start < to) cells(pen, view, at, y, colours, look, to);
      }
    });
    marks(pen, look);
    canvas.dataset.from = String(from);
    canvas.dataset.unit = String(unit);
  }
  function fit(pen, text, room) {
    if (pen.measureText(text).width <= room) return text;
    let end = text.length;
    while (end > 1 && pen.measureText(text.slice(0, end) + "\u2026").width > room) end -= 1;
    return text.slice(0, end) + "\u2026";
  }
  function ruler(pen, look, high) {
    const step = 10 ** Math.ceil(Math.log10(unit * 110));
    const fine = step / 5 >= unit * 110 ? step / 5 : step / 2 >= unit * 110 ? step / 2 : step;
    const by = current().isTime ? fine : Math.max(fine, 1);
    for (let at = Math.ceil(from / by) * by; x(at) < canvas.clientWidth; at += by) {
      pen.fillStyle = look.line;
      pen.fillRect(x(at), head - 8, 1, high - head + 8);
      pen.fillStyle = look.muted;
      pen.fillText(words(at), x(at) + 3, 8);
    }
  }
  function cells(pen, view, at, y, colours, look, to) {
    const row_ = view.cells[at];
    const size = view.wide / unit;
    // A finer view takes the place of what lies below it.
    if (view !== current().views[0]) {
      if (size < 0.75) return;
      const begin = Math.max(x(view.start), left);
      pen.fillStyle = look.bg;
      pen.fillRect(begin, y, Math.max(x(view.end) - begin, 0), row - 1);
    }
    const first = Math.max(Math.floor((from - view.start) / view.wide), 0);
    const end = Math.min(Math.ceil((to - view.start) / view.wide), view.columns);
    let pixel = -1;
    let strongest = 0;
    for (let column = first; column < end; column += 1) {
      const code = row_[column];
      if (!code) continue;
      const begin = Math.max(x(view.start + column * view.wide), left);
      if (size < 1 && Math.floor(begin) === pixel && code <= strongest) continue;
      pixel = Math.floor(begin);
      strongest = code;
      const box = Math.max(Math.min(size - (size > 4 ? 1 : 0), 26), 1);
      pen.fillStyle = colours[(code - 1) >> 2];
      const level = (code - 1) & 3;
      pen.fillRect(begin, y + 7 - 2 * level, box, row - 12 + 3 * level);
      const name = view.names[at].get(column);
      if (name) {
        let next = column + 1;
        while (next < view.columns && !row_[next]) next += 1;
        const room = (next - column) * size - box - 6;
        pen.fillStyle = look.text;
        if (room > 48) pen.fillText(fit(pen, name, room), begin + box + 3, y + row / 2);
      }
    }
  }
  function marks(pen, look) {
    pen.strokeStyle = look.race;
    pen.fillStyle = look.race;
    for (const finding of data.findings) {
      const ends = [0, 1].map((which) => {
        const at = x(side(finding, which)) + 3;
        // The last operation of the trace lies at the edge.
        const shown = at > canvas.clientWidth - 6 && at <= canvas.clientWidth + 3;
        return [shown ? canvas.clientWidth - 6 : at, head + finding.sides[which][0] * row];
      });
      for (const [at, y] of ends) {
        if (at < left || at > canvas.clientWidth) continue;
        pen.lineWidth = 2;
        pen.strokeRect(at - 5, y + 2, 9, row - 5);
        pen.beginPath();
        pen.moveTo(at - 5, head - 10);
        pen.lineTo(at + 5, head - 10);
        pen.lineTo(at, head - 3);
        pen.fill();
      }
      if (ends.some(([at]) => at < left || at > canvas.clientWidth)) continue;
      pen.setLineDash([5, 4]);
      pen.beginPath();
      pen.moveTo(ends[0][0], ends[0][1] + row / 2);
      pen.lineTo(ends[1][0], ends[1][1] + row / 2);
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  /** The finding whose mark is at a place, or -1. */
  function found(at) {
    return data.findings.findIndex((finding) =>
      [0, 1].some((which) => Math.abs(x(side(finding, which)) + 3 - at) < 7));
  }
  function tell(event) {
    const [at, y] = [event.offsetX, event.offsetY];
    const lane = data.rows[Math.floor((y - head) / row)];
    const finding = data.findings[found(at)];
    if (at < left) return;
    const parts = [words(from + (at - left) * unit)];
    if (lane) parts.push(lane);
    if (finding) parts.push(finding.title);
    place.textContent = parts.join(", ");
  }

  const actions = {
    in: () => zoom(1 / 2, left + width() / 2),
    out: () => zoom(2, left + width() / 2),
    left: () => move(-1 / 4),
    right: () => move(1 / 4),
    whole,
    next: () => show((last + 1) % data.findings.length),
  };
  const keys = { "+": "in", "=": "in", w: "in", "-": "out", s: "out", a: "left", d: "right",
    ArrowLeft: "left", ArrowRight: "right", 0: "whole", n: "next" };
  const controls = document.getElementById("controls");
  controls.hidden = canvas.hidden = false;
  place.textContent = "Dragging moves, the wheel with Ctrl zooms" +
    (data.findings.length ? ", a click on a mark opens its finding." : ".");
  for (const button of controls.querySelectorAll("button")) {
    button.addEventListener("click", actions[button.dataset.do]);
    if (button.dataset.do === "next") button.hidden = !data.findings.length;
  }
  canvas.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[action]();
  });
  axes.addEventListener("change", () => {
    axis = axes.selectedIndex;
    whole();
  });
  canvas.addEventListener("wheel", (event) => {
    // Without a key the wheel scrolls the page.
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.ctrlKey) zoom(event.deltaY < 0 ? 1 / 1.25 : 1.25, event.offsetX);
    else move((event.deltaX || event.deltaY) / 1500);
  }, { passive: false });
  let grabbed = null;
  canvas.addEventListener("pointerdown", (event) => {
    grabbed = { at: event.offsetX, from, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grabbed) return tell(event);
    grabbed.moved ||= Math.abs(event.offsetX - grabbed.at) > 3;
    from = grabbed.from - (event.offsetX - grabbed.at) * unit;
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const finding = data.findings[found(event.offsetX)];
    if (grabbed && !grabbed.moved && finding) location.hash = "f-" + finding.id;
    grabbed = null;
  });
  canvas.addEventListener("pointercancel", () => { grabbed = null; });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new ResizeObserver(redraw).observe(canvas);
  whole();
}
