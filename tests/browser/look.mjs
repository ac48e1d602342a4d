// Renders pages in a headless Chromium, for browser.py: reads a JSON array of views from standard input, and writes one
// of results to standard output. No page reaches a network: requests are refused and reported.

import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

import axe from "axe-core";
import puppeteer from "puppeteer-core";

const UNPACKED = join(import.meta.dirname, "node_modules", ".chromium");

async function look(browser, view) {
  const page = await browser.newPage();
  const seen = { console: [], errors: [], refused: [] };
  page.on("console", (message) => seen.console.push({ kind: message.type(), text: message.text() }));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  const session = await page.createCDPSession();
  await refuseNetworks(page, session, seen.refused);
  await page.setViewport({ width: view.width, height: view.height });
  await session.send("Emulation.setEmulatedMedia", {
    media: view.printed ? "print" : "screen",
    features: [{ name: "prefers-color-scheme", value: view.scheme }],
  });

  await page.goto(pathToFileURL(view.page).href, { waitUntil: "load" });
  await page.evaluate(painted);
  Object.assign(seen, await page.evaluate(times));
  seen.counts = await page.evaluate(counts, view.count);
  seen.sideways = await page.evaluate(sideways);
  seen.overlapping = await page.evaluate(overlappingTexts);
  seen.cut = await page.evaluate(cutTexts);
  seen.scrolling = await page.evaluate(scrollingTables);
  Object.assign(seen, await accessibility(page));
  seen.appeared = [];
  for (const selector of view.hover) seen.appeared.push(await hover(page, selector));
  seen.focused = [];
  for (let pressed = 0; pressed < view.tabs; pressed++) seen.focused.push(await tab(page));
  if (view.screenshot) await page.screenshot({ path: view.screenshot, fullPage: true });
  await page.close();
  return seen;
}

async function refuseNetworks(page, session, refused) {
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    if (/^(file|data):/.test(request.url())) return request.continue();
    refused.push(request.url());
    return request.abort("blockedbyclient");
  });
  await session.send("Network.enable");
  // A WebSocket is not a request; the launch options block it for every host.
  session.on("Network.webSocketCreated", ({ url }) => refused.push(url));
}

async function accessibility(page) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => axe.run({ resultTypes: ["violations", "incomplete"] }));
  const targets = (nodes) => nodes.map((node) => node.target.join(" "));
  const short = (rules) => rules.map(({ id, impact, help, nodes }) => ({ id, impact, help, targets: targets(nodes) }));
  return { violations: short(found.violations), undecided: short(found.incomplete) };
}

// Returns the texts of elements that are visible only while the mouse is over an element.
async function hover(page, selector) {
  await page.mouse.move(0, 0);
  await page.evaluate(drawn);
  const before = await page.evaluateHandle(visibleElements);
  await page.hover(selector);
  await page.evaluate(drawn);
  return page.evaluate(
    (before, after) => {
      const appeared = new Set([...after].filter((element) => !before.has(element)));
      const whole = [...appeared].filter((element) => !appeared.has(element.parentElement));
      return whole.map((each) => (each.innerText ?? each.textContent).trim()); // an SVG's have no `innerText`
    },
    before,
    await page.evaluateHandle(visibleElements),
  );
}

// Returns role and name of the focused element after Tab was pressed, as a screen reader announces them.
async function tab(page) {
  await page.keyboard.press("Tab");
  const root = await page.evaluateHandle(() => document.activeElement);
  const { role, name } = await page.accessibility.snapshot({ root, interestingOnly: false });
  return { role, name: name ?? "" };
}

// The following functions run in the page.

function drawn() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

// An empty page is never painted.
function painted() {
  const painted = new Promise((done) => new PerformanceObserver(done).observe({ type: "paint", buffered: true }));
  return Promise.race([painted, new Promise((done) => setTimeout(done, 2000))]);
}

function times() {
  const [navigation] = performance.getEntriesByType("navigation");
  const [paint] = performance.getEntriesByName("first-paint");
  return { loaded_ms: navigation.loadEventEnd, painted_ms: paint?.startTime ?? null };
}

function counts(selectors) {
  return Object.fromEntries(selectors.map((each) => [each, document.querySelectorAll(each).length]));
}

function sideways() {
  return document.documentElement.scrollWidth > document.documentElement.clientWidth;
}

function visibleElements() {
  const visible = (each) => each.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  return new Set([...document.querySelectorAll("body *")].filter(visible));
}

// Returns pairs of texts in one SVG with boxes, rotated as drawn, that share more than a pixel in every direction. The
// height of a line is its font size: the boxes of fonts are higher than their glyphs.
function overlappingTexts() {
  const corners = (element) => {
    const { x, y, width, height } = element.getBBox();
    const blank = (element.getExtentOfChar(0).height - parseFloat(getComputedStyle(element).fontSize)) / 2;
    const [top, bottom, screen] = [y + blank, y + height - blank, element.getScreenCTM()];
    const places = [[x, top], [x + width, top], [x + width, bottom], [x, bottom]];
    return places.map(([left, down]) => new DOMPoint(left, down).matrixTransform(screen));
  };
  const shared = (one, other, { x, y }) => {
    const ends = (box) => {
      const along = box.map((corner) => corner.x * x + corner.y * y);
      return [Math.min(...along), Math.max(...along)];
    };
    const [[from, to], [start, end]] = [ends(one), ends(other)];
    return Math.min(to, end) - Math.max(from, start);
  };
  const directions = ([a, b, , d]) =>
    [b, d].map((end) => {
      const length = Math.hypot(end.x - a.x, end.y - a.y);
      return { x: (end.x - a.x) / length, y: (end.y - a.y) / length };
    });
  const overlap = (one, other) =>
    [...directions(one), ...directions(other)].every((each) => shared(one, other, each) > 1);
  const seen = (each) => each.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  const pairs = [];
  for (const svg of document.querySelectorAll("svg")) {
    if (svg.ownerSVGElement) continue;
    const texts = [...svg.querySelectorAll("text")]
      .filter((each) => each.textContent.trim() && seen(each))
      .map((each) => ({ said: each.textContent.trim(), box: corners(each) }));
    texts.forEach((one, place) => {
      for (const other of texts.slice(place + 1)) if (overlap(one.box, other.box)) pairs.push([one.said, other.said]);
    });
  }
  return pairs;
}

// Returns texts that lie outside their SVG by more than a pixel.
function cutTexts() {
  const isCut = (each) => {
    const [inner, outer] = [each.getBoundingClientRect(), each.closest("svg").getBoundingClientRect()];
    const over = [outer.left - inner.left, outer.top - inner.top, inner.right - outer.right, inner.bottom - outer.bottom];
    return inner.width > 0 && Math.max(...over) > 1;
  };
  return [...document.querySelectorAll("svg text")].filter(isCut).map((each) => each.textContent.trim());
}

// Returns the names of tables that are wider than their frames. Folded tables are opened during the check.
function scrollingTables() {
  const folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((each) => each.setAttribute("open", ""));
  const frames = [...document.querySelectorAll("table")].map((each) => each.parentElement);
  const found = frames.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel);
  folded.forEach((each) => each.removeAttribute("open"));
  return found;
}

const views = JSON.parse(await text(process.stdin));
const browser = await puppeteer.launch({
  executablePath: join(UNPACKED, "chromium"),
  headless: "shell",
  pipe: true, // it ends when this program does
  args: ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none", "--host-resolver-rules=MAP * ~NOTFOUND"],
  env: {
    ...process.env,
    LD_LIBRARY_PATH: join(UNPACKED, "al2023", "lib"),
    FONTCONFIG_FILE: join(import.meta.dirname, "fonts.conf"),
  },
});
try {
  const seen = [];
  for (const view of views) {
    seen.push(
      await look(browser, view).catch(({ message }) => {
        throw new Error(`${view.page}: ${message.split("\n")[0]}`);
      }),
    );
  }
  process.stdout.write(JSON.stringify(seen));
} catch ({ message }) {
  process.stderr.write(message);
  process.exitCode = 1;
} finally {
  await browser.close();
}
