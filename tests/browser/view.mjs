// Opens a profile in the real speedscope, in headless Chromium, and prints what the page shows:
//
//   node view.mjs PROFILE
//
// Printed is JSON: {problem} where speedscope does not show the profile, else {title, tabs, saved}.
// A tab is {name, rows}, with the first rows of its Sandwich table, largest total first; saved is the
// file that speedscope's own "Export" makes of what it has loaded.
import chromium from "@sparticuz/chromium";
import { createRequire } from "node:module";
import path from "node:path";
import puppeteer from "puppeteer-core";
import { pathToFileURL } from "node:url";

const installed = createRequire(import.meta.url).resolve("speedscope/package.json");
const site = pathToFileURL(path.join(path.dirname(installed), "dist/release/index.html"));

function logged(page, text) {
  return new Promise((resolve) => {
    page.on("console", (message) => message.text().includes(text) && resolve());
  });
}

// What kept speedscope from showing the profile, or null.
async function load(page, profile) {
  const said = new Promise((resolve) => {
    page.on("dialog", (dialog) => dialog.dismiss().then(() => resolve(dialog.message())));
    page.on("pageerror", (error) => resolve(error.message));
  });
  // A file chosen before there is a canvas is dropped without a word.
  const ready = logged(page, "WebGL initialized");
  await page.goto(site.href);
  await ready;
  await (await page.$("#file")).uploadFile(profile);
  const shown = page.waitForFunction(() =>
    ["Time Order", "Something went wrong"].find((text) => document.body.innerText.includes(text)),
  );
  const text = shown.then((handle) => handle.jsonValue()).catch((error) => error.message);
  const end = await Promise.race([said, text]);
  return end === "Time Order" ? null : end;
}

async function save(page) {
  await page.evaluate(() => {
    URL.createObjectURL = (blob) => ((window.saved = blob), "blob:");
  });
  await page.keyboard.down("Control");
  await page.keyboard.press("s");
  await page.keyboard.up("Control");
  return JSON.parse(await page.evaluate(() => window.saved.text()));
}

function shownName() {
  return document.body.innerText.match(/Sandwich\s*([^]*?)\s*⤴️Export/)[1];
}

function shownRows() {
  const cells = [...document.querySelectorAll("tr")].map((row) => [...row.querySelectorAll("td")]);
  return cells
    .filter((row) => row.length === 3)
    .map(([total, self, name]) => ({
      total: total.innerText.trim(),
      self: self.innerText.trim(),
      name: name.textContent,
      file: name.title,
    }));
}

async function drawn(page) {
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

async function sandwiches(page, count) {
  await page.keyboard.press("3");
  await page.waitForSelector("th");
  await page.evaluate(() => document.querySelector("th").click());
  const tabs = [];
  for (let index = 0; index < count; index++) {
    await drawn(page);
    tabs.push({ name: await page.evaluate(shownName), rows: await page.evaluate(shownRows) });
    await page.keyboard.press("n");
  }
  return tabs;
}

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: chromium.args,
  headless: "shell",
  defaultViewport: { width: 1400, height: 1000 },
});
try {
  const page = await browser.newPage();
  const problem = await load(page, process.argv[2]);
  if (problem) console.log(JSON.stringify({ problem }));
  else {
    const saved = await save(page);
    const tabs = await sandwiches(page, saved.profiles.length);
    console.log(JSON.stringify({ title: await page.title(), tabs, saved }));
  }
} finally {
  await browser.close();
}
