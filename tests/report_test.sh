#!/usr/bin/env bash
# The HTML report in a real browser: no errors, nothing from the network, pointing at ops says what they are and
# waited for, zoom and keys work, light and dark differ, 32 devices x 256 microbatches are there within 3 s.
#
# A copy of the page gets a script of its own that acts as a user would and leaves what it saw in the page.
set -u
if [ -n "${ZB_AGAIN:-}" ]; then
  echo "ZB_AGAIN: the page is the same whoever compiled"
  exit 77
fi
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo "no chromium here: apt-get install chromium fonts-dejavu-core (CHROMIUM=1 make test does)"
  exit 77
}
browse() { # ARGUMENT..: stays silent; what the page's console says goes to the file `console`
  timeout 120 "$chromium" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage \
    --user-data-dir="$SCRATCH/browser" --window-size=1400,1000 --enable-logging=stderr "$@" 2>"$SCRATCH/log"
  local code=$?
  grep CONSOLE "$SCRATCH/log" >>"$SCRATCH/console"
  return $code
}
passed=0 failed=0
expect() { # WHAT COMMAND..
  if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not so: $1"; fi
}
no() { ! "$@"; }
: >"$SCRATCH/console"

if ! browse --dump-dom about:blank >/dev/null; then
  echo "$chromium does not start here: $(tail -n 1 "$SCRATCH/log")"
  exit 77
fi

cat >"$SCRATCH/probe.js" <<'END'
const seen = [];
const say = (word, value) => seen.push(word + ": " + value);
const tip = document.getElementById("tip");
const send = (canvas, type, x, y, more) => {
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + y, bubbles: true, button: 0, ...more}));
};
const walk = (id, step) => { // texts of the tip on the way through the canvas
  const canvas = document.getElementById(id), texts = new Set();
  for (let y = 6; y < canvas.clientHeight; y += 8)
    for (let x = 0; x < canvas.clientWidth; x += step) {
      send(canvas, "pointermove", x, y);
      if (!tip.hidden) texts.add(tip.innerText.replace(/\n/g, " | "));
    }
  send(canvas, "pointerleave", 0, 0);
  return [...texts];
};
addEventListener("load", () => {
  say("loaded ms", Math.round(performance.now()));
  const ops = document.getElementById("ops");
  for (const text of walk("ops", STEP)) say("op", text);
  for (const text of walk("memory", 200)) say("memory", text);
  say("hidden after leaving", tip.hidden);
  const picture = () => ops.toDataURL();
  const whole = picture();
  document.getElementById("zoom-in").click();
  const near = picture();
  say("zoom in draws", near !== whole);
  ops.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
  say("an arrow moves", picture() !== near);
  ops.dispatchEvent(new WheelEvent("wheel", {deltaY: 100, clientX: 300, clientY: 300, ctrlKey: true, cancelable: true}));
  document.getElementById("zoom-fit").click();
  say("fit draws the whole", picture() === whole);
  say("ink", new Set(ops.getContext("2d").getImageData(0, 0, ops.width, ops.height).data).size > 8);
  say("overflow", document.documentElement.scrollWidth > document.documentElement.clientWidth);
  say("errors", errors.join(" "));
  const out = document.body.appendChild(document.createElement("pre"));
  out.id = "seen";
  out.textContent = "\n" + seen.join("\n") + "\n";
});
END

probe() { # PAGE STEP: what the probe saw, pointing every STEP pixels, in the file PAGE.seen
  {
    sed 's|<head>|<head><script>const errors = []; addEventListener("error", (e) => errors.push(e.message));</script>|
         /<\/body>/,$d' "$1"
    echo "<script>const STEP = $2;"; cat "$SCRATCH/probe.js"; echo '</script></body></html>'
  } >"$SCRATCH/probed.html"
  browse --dump-dom "file://$SCRATCH/probed.html" >"$SCRATCH/dom"
  sed -n '/<pre id="seen">/,/<\/pre>/p' "$SCRATCH/dom" >"$1.seen"
}
page() { # NAME OPTION..: NAME.html of the schedule NAME.json
  "$ZBSOLVE" export "$SCRATCH/$1.json" --to html -q -o "$SCRATCH/$1.html" "${@:2}" || exit 1
}
solve() { # NAME PROFILE OPTION..
  "$ZBSOLVE" solve "$CONFIGS/$2" -q -o "$SCRATCH/$1.json" "${@:3}" >/dev/null && "$ZBCHECK" "$SCRATCH/$1.json" >/dev/null || exit 1
}

solve small table5-1.5b-p8-m24.json --method zb-h1
page small --time-limit 2
probe "$SCRATCH/small.html" 3
saw() { grep -qE "^$1" "$SCRATCH/small.html.seen"; }
expect "the first op waits for nothing" saw 'op: 0F0 on device 0 \| forward, stage 0, microbatch 0 \| 0 ns to 18.522 ms \(18.522 ms\) \| starts waits for nothing'
expect "an op that waits says for what" saw 'op: 1F0 on device 1 .* starts after 19.123 ms of waiting for the activation of 0F0 from device 0'
expect "a gradient is one" saw 'op: 6B0 .* of waiting for the gradient of 7B0 from device 7'
expect "an op that need not wait says so" saw 'op: 0F1 .* starts right after 0F0'
expect "all 8 devices answer" [ "$(grep -oE '^op: [0-9]+F' "$SCRATCH/small.html.seen" | sort -u | wc -l)" = 8 ]
expect "memory says how much" saw 'memory: .* on device 0 at .* \| peak 1.54 MiB'
for what in 'hidden after leaving: true' 'zoom in draws: true' 'an arrow moves: true' 'fit draws the whole: true' 'ink: true' 'overflow: false' 'errors: $'; do
  expect "$what" saw "$what"
done
expect "the comparison is there" grep -q '<td>1f1b-interleaved</td>' "$SCRATCH/small.html"
expect "the frontier is there" grep -q '<polyline class="schedule"' "$SCRATCH/small.html"
expect "nothing comes from elsewhere" no grep -qE '(src|href)=|@import|url\(|fetch\(' "$SCRATCH/small.html"

solve v table8-6.2b-p16-m48.json --method zb-v
page v --only-schedule
probe "$SCRATCH/v.html" 9
expect "V: 32 stages answer" [ "$(grep -oE '^op: [0-9]+F' "$SCRATCH/v.html.seen" | sort -u | wc -l)" = 32 ]
expect "V: the turn needs no message" no grep -qE '^op: 16F.* from device' "$SCRATCH/v.html.seen"
expect "V: no errors" grep -q '^errors: $' "$SCRATCH/v.html.seen"

solve large table5-28.3b-p32-m256.json --method greedy --memory-limit 2x
page large --only-schedule
probe "$SCRATCH/large.html" 100
loaded_ms=$(sed -n 's/^loaded ms: //p' "$SCRATCH/large.html.seen")
echo "32 x 256: drawn ${loaded_ms:-never} ms after the page began, $(stat -c %s "$SCRATCH/large.html") bytes"
expect "32 x 256 within 3 s" [ "${loaded_ms:-9999}" -lt 3000 ]
expect "32 x 256: no errors" grep -q '^errors: $' "$SCRATCH/large.html.seen"

browse --blink-settings=preferredColorScheme=1 --screenshot="$SCRATCH/light.png" "file://$SCRATCH/small.html" >/dev/null
browse --blink-settings=preferredColorScheme=0 --screenshot="$SCRATCH/dark.png" "file://$SCRATCH/small.html" >/dev/null
expect "a light picture" [ -s "$SCRATCH/light.png" ]
expect "a dark picture" [ -s "$SCRATCH/dark.png" ]
expect "they differ" no cmp -s "$SCRATCH/light.png" "$SCRATCH/dark.png"
"$ZBSOLVE" export "$SCRATCH/small.json" --to svg -o "$SCRATCH/small.svg"
browse --dump-dom "file://$SCRATCH/small.svg" >"$SCRATCH/dom"
expect "the picture is an SVG to a browser" no grep -q parsererror "$SCRATCH/dom"
expect "the console stays empty" no grep . "$SCRATCH/console"
echo "$passed passed, $failed failed"
