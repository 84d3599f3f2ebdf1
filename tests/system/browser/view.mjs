// Opens profiles in the real speedscope, in headless Chromium, and says what its page shows.
//
// Reads the path of a profile per line, and answers with a line of JSON: {problem} where speedscope
// does not show it, else {title, tabs, saved}. A tab is {name, rows}, with the first rows of its
// Sandwich table, largest total first; saved is what speedscope's own "Export" makes of the profile.
import chromium from "@sparticuz/chromium";
import { createRequire } from "node:module";
import path from "node:path";
import puppeteer from "puppeteer-core";
import readline from "node:readline";
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

function clickTotal() {
  const header = [...document.querySelectorAll("th")].find((th) => th.innerText.trim() === "Total");
  header?.click();
  return header !== undefined;
}

// The list of profiles is a table too, but shows no percents.
function shownRows() {
  const cells = [...document.querySelectorAll("tr")].map((row) => [...row.querySelectorAll("td")]);
  return cells
    .filter((row) => row.length === 3 && row[0].innerText.includes("%"))
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
  await page.waitForFunction(clickTotal);
  const tabs = [];
  for (let index = 0; index < count; index++) {
    await drawn(page);
    tabs.push({ name: await page.evaluate(shownName), rows: await page.evaluate(shownRows) });
    await page.keyboard.press("n");
  }
  return tabs;
}

async function view(page, profile) {
  const problem = await load(page, profile);
  if (problem) return { problem };
  const saved = await save(page);
  return { title: await page.title(), tabs: await sandwiches(page, saved.profiles.length), saved };
}

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: chromium.args,
  headless: "shell",
  defaultViewport: { width: 1400, height: 1000 },
});
try {
  for await (const profile of readline.createInterface({ input: process.stdin })) {
    const page = await browser.newPage();
    console.log(JSON.stringify(await view(page, profile)));
    await page.close();
  }
} finally {
  await browser.close();
}
