// Opens profiles in the real speedscope, in headless Chromium, and prints what the page shows.
//
//   node view.mjs PROFILE
//
// Printed is JSON: {error} where speedscope does not show the profile, else {title, tabs, saved}:
// each tab's name and the first rows of its Sandwich table, and the file speedscope itself saves.
import chromium from "@sparticuz/chromium";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import puppeteer from "puppeteer-core";
import { pathToFileURL } from "node:url";

const profile = process.argv[2];
const package_ = createRequire(import.meta.url).resolve("speedscope/package.json");

async function open(page) {
  const site = path.join(path.dirname(package_), "dist/release");
  const problem = new Promise((resolve) => {
    page.on("dialog", (dialog) => dialog.dismiss().then(() => resolve(dialog.message())));
    page.on("pageerror", (error) => resolve(error.message));
  });
  await page.goto(`${pathToFileURL(site)}/index.html`);
  await (await page.waitForSelector("#file")).uploadFile(profile);
  const shown = page.waitForFunction(() =>
    ["Time Order", "Something went wrong"].find((text) => document.body.innerText.includes(text)),
  );
  const result = await Promise.race([problem, shown.then((handle) => handle.jsonValue())]);
  return result === "Time Order" ? null : result;
}

async function tab(page, index) {
  const rows = () =>
    [...document.querySelectorAll("tr")]
      .map((row) => [...row.querySelectorAll("td")])
      .filter((cells) => cells.length === 3)
      .map(([total, self, name]) => ({
        total: total.innerText.trim(),
        self: self.innerText.trim(),
        name: name.textContent,
        file: name.title,
      }));
  return { rows: await page.evaluate(rows) };
}

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: chromium.args,
  headless: "shell",
  defaultViewport: { width: 1400, height: 1000 },
});
const page = await browser.newPage();
const error = await open(page);
if (error) console.log(JSON.stringify({ error }));
else {
  await page.keyboard.press("3");
  await new Promise((r) => setTimeout(r, 500));
  console.log(await page.evaluate(() => document.body.innerText), JSON.stringify(await tab(page), null, 1), await page.title());
}
await browser.close();
