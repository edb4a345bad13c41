// The chart of a report: ops over time and the memory below, drawn on two canvases that share one view.
//
// Times are whole ns. An op is a number, 4 * (stage * microbatches + microbatch) + kind; devices hold theirs in
// order, with `start` and `after` (the op each waited for, counted through all devices, -1: none) beside them.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const KINDS = ["F", "B", "W", "BW"];
  const WORDS = ["forward", "backward for the input", "backward for the weights", "both backwards in one"];
  const GIFTS = ["activation", "gradient", "", "gradient"];
  const PAINTS = ["f0", "f1", "b0", "b1", "w0", "w1", "x0", "x1"];
  const LEFT = 46, RIGHT = 14, TOP = 4, AXIS = 24, FREE = 2; // FREE: between lanes
  const SHARE = 6, BAR_LEAST = 2;                          // pixels: a column of shares, the least usual op
  const devices = data.devices, count = devices.length;
  const lane = count <= 8 ? 28 : count <= 16 ? 22 : 17, memoryLane = count <= 8 ? 24 : count <= 16 ? 20 : 15;

  const op = (device, i) => {
    const code = device.ops[i], kind = code % 4, pass = Math.floor(code / 4);
    const stage = Math.floor(pass / data.microbatches), start = device.start[i];
    return {kind, stage, microbatch: pass % data.microbatches, start, end: start + data.times[kind][stage],
            name: stage + KINDS[kind] + (pass % data.microbatches)};
  };
  const change = (device, i) => {
    const code = device.ops[i], stage = Math.floor(code / 4 / data.microbatches);
    return data.bytes ? data.bytes[code % 4][stage] : 0;
  };
  const later = (o) => data.chunks[o.stage] > 0 ? 1 : 0;

  // Of all ops together: where each device's begin, so that `after` finds its op.
  const begins = [0];
  for (const device of devices) begins.push(begins[begins.length - 1] + device.ops.length);
  const opAt = (index) => {
    let d = 0;
    while (begins[d + 1] <= index) d++;
    return {device: d, index: index - begins[d], ...op(devices[d], index - begins[d])};
  };

  const timeText = (ns) =>
    ns < 1e3 ? ns + " ns" : ns < 1e6 ? (ns / 1e3).toFixed(3) + " us" : ns < 1e11 ? (ns / 1e6).toFixed(3) + " ms"
      : (ns / 1e9).toFixed(3) + " s";
  const bytesText = (bytes) => {
    let unit = 0;
    for (; Math.abs(bytes) >= 1024 && unit < 4; unit++) bytes /= 1024;
    return (unit ? bytes.toFixed(2) : bytes) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][unit];
  };

  // The kept memory of each device: a step at `at`, to `kept`.
  for (const device of devices) {
    let kept = device.fixed;
    device.at = [0];
    device.kept = [kept];
    for (let i = 0; data.bytes && i < device.ops.length; i++) {
      const step = change(device, i), o = op(device, i);
      if (step === 0) continue;
      kept += step;
      device.at.push(step > 0 ? o.start : o.end);
      device.kept.push(kept);
    }
  }
  const times = devices.flatMap((device) => device.ops.map((_, i) => op(device, i).end - device.start[i]));
  const usual = Float64Array.from(times).sort()[Math.floor(times.length / 10)] || 1;
  const most = Math.max(1, ...devices.map((d) => Math.max(d.limit || 0, d.peak)));

  // The view.
  const view = {from: 0, to: data.end};
  const canvases = {ops: document.getElementById("ops"), memory: document.getElementById("memory")};
  const tip = document.getElementById("tip");
  let width = 1000, hovered = null, colours = {};
  const x = (ns) => LEFT + (ns - view.from) / (view.to - view.from) * (width - LEFT - RIGHT);
  const timeAt = (px) => view.from + (px - LEFT) / (width - LEFT - RIGHT) * (view.to - view.from);
  const least = Math.max(10, usual * 4);

  const setView = (from, to) => {
    const length = Math.min(Math.max(to - from, Math.min(least, data.end)), data.end);
    view.from = Math.min(Math.max(from, 0), data.end - length);
    view.to = view.from + length;
    draw();
  };
  const zoom = (factor, around) =>
    setView(around - (around - view.from) * factor, around + (view.to - around) * factor);

  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of [...PAINTS, ...PAINTS.map((p) => p + "-ink"), "page", "ink", "soft", "line", "lane", "bound", "kept"])
      colours[name] = style.getPropertyValue("--" + name).trim();
  };

  // Gives the canvas its size in device pixels and a context in CSS pixels.
  const prepare = (canvas, height) => {
    const ratio = window.devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    return context;
  };

  const firstAfter = (list, ns) => { // place of the first entry above ns
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] > ns) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  const drawLanes = (context, height, bottom) => {
    context.textAlign = "right";
    for (let d = 0; d < count; d++) {
      context.fillStyle = colours.lane;
      context.fillRect(LEFT, TOP + d * height, width - LEFT - RIGHT, height - FREE);
      context.fillStyle = colours.soft;
      context.fillText(d, LEFT - 8, TOP + d * height + (height - FREE) / 2);
    }
    const rough = (view.to - view.from) / (width - LEFT - RIGHT) * 90;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = Math.max(1, power * [1, 2, 5, 10].find((f) => f * power >= rough));
    const unit = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "us"] : [1, "ns"];
    context.textAlign = "center";
    for (let ns = Math.ceil(view.from / step) * step; ns <= view.to; ns += step) {
      context.fillStyle = colours.line;
      context.fillRect(x(ns), TOP, 1, bottom - TOP + 3);
      context.fillStyle = colours.soft;
      context.fillText(+(ns / unit[0]).toFixed(3) + " " + unit[1], Math.max(x(ns), LEFT + 8), bottom + 13);
    }
  };

  const drawShares = (context, device, y) => {
    const columns = Math.max(1, Math.floor((width - LEFT - RIGHT) / SHARE)), span = (view.to - view.from) / columns;
    const shares = new Float64Array(columns * 8), height = lane - FREE;
    for (let i = Math.max(0, firstAfter(device.start, view.from) - 1); i < device.ops.length; i++) {
      const o = op(device, i), from = (o.start - view.from) / span, to = (o.end - view.from) / span;
      if (from >= columns) break;
      for (let k = Math.max(0, Math.floor(from)); k < columns && k < to; k++)
        shares[k * 8 + 2 * o.kind + later(o)] += Math.min(to, k + 1) - Math.max(from, k);
    }
    for (let k = 0; k < columns; k++)
      for (let part = 0, below = 0; part < 8; part++) {
        const share = shares[k * 8 + part] * height;
        if (share === 0) continue;
        below += share;
        context.fillStyle = colours[PAINTS[part]];
        context.fillRect(LEFT + k * SHARE, y + height - below, SHARE + 0.5, share);
      }
  };

  const drawOps = (context, device, y) => {
    const right = width - RIGHT;
    for (let i = Math.max(0, firstAfter(device.start, view.from) - 1); i < device.ops.length; i++) {
      const o = op(device, i);
      if (o.start >= view.to) break;
      const from = Math.max(x(o.start), LEFT), to = Math.min(x(o.end), right), wide = to - from;
      if (wide <= 0) continue;
      const paint = PAINTS[2 * o.kind + later(o)];
      context.fillStyle = colours[paint];
      context.fillRect(from, y, wide > 3 ? wide - 0.7 : wide, lane - FREE);
      const text = wide > 70 ? o.name : String(o.microbatch);
      if (wide < text.length * 6.4 + 4) continue;
      context.fillStyle = colours[paint + "-ink"];
      context.fillText(text, from + wide / 2, y + (lane - FREE) / 2 + 0.5);
    }
  };

  const drawBound = (context, height) => {
    if (!data.bound) return;
    context.strokeStyle = colours.bound;
    context.lineWidth = 1.8;
    context.beginPath();
    devices.forEach((device, d) => {
      const at = x((data.objective === "makespan" ? 0 : device.first) + data.bound);
      if (at < LEFT || at > width - RIGHT) return;
      context.moveTo(at, TOP + d * height);
      context.lineTo(at, TOP + (d + 1) * height - FREE);
    });
    context.stroke();
  };

  const outline = (context, o, dashed) => {
    const from = Math.max(x(o.start), LEFT), to = Math.min(x(o.end), width - RIGHT);
    if (to < from) return;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.setLineDash(dashed ? [4, 3] : []);
    context.strokeRect(from, TOP + o.device * lane, Math.max(to - from, 2), lane - FREE);
    context.setLineDash([]);
  };

  // The op under the pointer, the one it waited for, and a line between them.
  const drawHovered = (context) => {
    if (!hovered) return;
    outline(context, hovered, false);
    const after = devices[hovered.device].after[hovered.index];
    if (after < 0) return;
    const before = opAt(after), middle = (lane - FREE) / 2;
    outline(context, before, true);
    if (before.device === hovered.device) return;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x(before.end), TOP + before.device * lane + middle);
    context.lineTo(x(hovered.start), TOP + hovered.device * lane + middle);
    context.stroke();
  };

  const drawMemory = () => {
    const bottom = TOP + count * memoryLane - FREE, context = prepare(canvases.memory, bottom + AXIS);
    const height = memoryLane - FREE - 1, right = width - RIGHT;
    drawLanes(context, memoryLane, bottom);
    devices.forEach((device, d) => {
      const floor = TOP + d * memoryLane + memoryLane - FREE, y = (bytes) => floor - bytes / most * height;
      context.fillStyle = colours.kept;
      context.globalAlpha = 0.6;
      context.beginPath();
      context.moveTo(LEFT, floor);
      let i = Math.max(0, firstAfter(device.at, view.from) - 1), column = LEFT;
      context.lineTo(LEFT, y(device.kept[i]));
      // Within a column only the largest value is drawn, so that no peak is lost.
      for (let highest = device.kept[i]; i < device.at.length && column < right;) {
        for (highest = device.kept[i]; i + 1 < device.at.length && x(device.at[i + 1]) < column + 1; i++)
          highest = Math.max(highest, device.kept[i + 1]);
        context.lineTo(column, y(highest));
        const next = i + 1 < device.at.length ? Math.min(right, Math.max(column + 1, x(device.at[i + 1]))) : right;
        context.lineTo(next, y(next > column + 1 ? device.kept[i] : highest));
        column = next;
        if (i + 1 < device.at.length) i++;
        else break;
      }
      context.lineTo(right, floor);
      context.fill();
      context.globalAlpha = 1;
      if (device.limit === null) return;
      context.strokeStyle = colours.soft;
      context.lineWidth = 1;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(LEFT, Math.round(y(device.limit)) + 0.5);
      context.lineTo(right, Math.round(y(device.limit)) + 0.5);
      context.stroke();
      context.setLineDash([]);
    });
  };

  // The ops are drawn once a view, on a sheet aside; pointing copies it and adds what is pointed at.
  const sheet = document.createElement("canvas");
  const showOps = () => {
    const context = canvases.ops.getContext("2d");
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, sheet.width, sheet.height);
    context.drawImage(sheet, 0, 0);
    context.restore();
    drawHovered(context);
  };
  const draw = () => {
    const bottom = TOP + count * lane - FREE, context = prepare(canvases.ops, bottom + AXIS);
    drawLanes(context, lane, bottom);
    const wide = usual / (view.to - view.from) * (width - LEFT - RIGHT);
    devices.forEach((device, d) => (wide < BAR_LEAST ? drawShares : drawOps)(context, device, TOP + d * lane));
    drawBound(context, lane);
    sheet.width = canvases.ops.width;
    sheet.height = canvases.ops.height;
    sheet.getContext("2d").drawImage(canvases.ops, 0, 0);
    drawHovered(context);
    if (data.bytes) drawMemory();
    else canvases.memory.hidden = true;
  };

  // Pointing.

  const put = (parent, tag, text) => {
    const element = parent.appendChild(document.createElement(tag));
    element.textContent = text;
  };
  const waitText = (o, device) => {
    const after = device.after[o.index];
    if (after < 0) return "waits for nothing";
    const before = opAt(after), idle = o.start - (o.index ? op(device, o.index - 1).end : 0);
    if (before.device === o.device && o.index && after === begins[o.device] + o.index - 1 && idle === 0)
      return "right after " + before.name;
    const gift = before.stage === o.stage ? before.name : `the ${GIFTS[o.kind]} of ${before.name}`;
    const where = before.device === o.device ? "" : ` from device ${before.device}`;
    return (idle > 0 ? `after ${timeText(idle)} of waiting for ` : "with ") + gift + where;
  };
  const showTip = (o, event) => {
    const device = devices[o.device];
    tip.replaceChildren();
    put(tip, "b", o.name);
    put(tip, "span", ` on device ${o.device}`);
    put(tip, "div", `${WORDS[o.kind]}, stage ${o.stage}, microbatch ${o.microbatch}`);
    put(tip, "div", `${timeText(o.start)} to ${timeText(o.end)} (${timeText(o.end - o.start)})`);
    put(tip, "div", "starts " + waitText(o, device));
    tip.hidden = false;
    const right = event.clientX + 16 + tip.offsetWidth > innerWidth;
    tip.style.left = Math.max(4, right ? event.clientX - tip.offsetWidth - 12 : event.clientX + 16) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)) + "px";
  };
  const showMemory = (d, ns, event) => {
    const device = devices[d], kept = device.kept[Math.max(0, firstAfter(device.at, ns) - 1)];
    tip.replaceChildren();
    put(tip, "b", bytesText(kept));
    put(tip, "span", ` on device ${d} at ${timeText(Math.round(ns))}`);
    put(tip, "div", `peak ${bytesText(device.peak)}, ` + (device.limit === null ? "no limit" : `limit ${bytesText(device.limit)}`));
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(event.clientX + 16, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)) + "px";
  };
  const leave = () => {
    tip.hidden = true;
    if (hovered) {
      hovered = null;
      showOps();
    }
  };
  const point = (canvas, event) => {
    const box = canvas.getBoundingClientRect(), ns = timeAt(event.clientX - box.left);
    const inMemory = canvas === canvases.memory;
    const d = Math.floor((event.clientY - box.top - TOP) / (inMemory ? memoryLane : lane));
    if (d < 0 || d >= count || ns < view.from || ns > view.to) return leave();
    if (inMemory) return showMemory(d, ns, event);
    const i = firstAfter(devices[d].start, ns) - 1;
    const o = i < 0 ? null : {device: d, index: i, ...op(devices[d], i)};
    if (!o || ns >= o.end) return leave();
    const same = hovered && hovered.device === d && hovered.index === i;
    hovered = o;
    showTip(o, event);
    if (!same) showOps();
  };

  for (const canvas of Object.values(canvases)) {
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = {x: event.clientX, from: view.from, to: view.to};
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("dragged");
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return point(canvas, event);
      const moved = (event.clientX - drag.x) / (width - LEFT - RIGHT) * (drag.to - drag.from);
      tip.hidden = true;
      setView(drag.from - moved, drag.to - moved);
    });
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, () => {
        drag = null;
        canvas.classList.remove("dragged");
      });
    canvas.addEventListener("pointerleave", leave);
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.002), timeAt(event.clientX - canvas.getBoundingClientRect().left));
    }, {passive: false});
    canvas.addEventListener("dblclick", (event) =>
      zoom(0.4, timeAt(event.clientX - canvas.getBoundingClientRect().left)));
  }
  const middle = () => (view.from + view.to) / 2;
  const shift = (part) => setView(view.from + part * (view.to - view.from), view.to + part * (view.to - view.from));
  const keys = {"+": () => zoom(0.6, middle()), "=": () => zoom(0.6, middle()), "-": () => zoom(1 / 0.6, middle()),
                "0": () => setView(0, data.end), ArrowLeft: () => shift(-0.2), ArrowRight: () => shift(0.2)};
  canvases.ops.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  document.getElementById("zoom-in").addEventListener("click", keys["+"]);
  document.getElementById("zoom-out").addEventListener("click", keys["-"]);
  document.getElementById("zoom-fit").addEventListener("click", keys["0"]);

  const restyle = () => {
    readColours();
    draw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  addEventListener("resize", draw);
  restyle();
})();
