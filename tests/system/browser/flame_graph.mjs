// Opens a flame graph of `flame export -f svg` or `-f html` in headless Chromium, and uses it.
//
// Reads a line of JSON per step, {open: PATH, width}, {click: NAME}, {keys: [KEY, …]} or
// {type: TEXT}, and answers each with a line of JSON: {requests, problems, told, frames, hits,
// invalid}. requests are the URLs that were loaded since the last open, problems what the browser
// complained of, told is the line above the frames; frames are the boxes that are shown by the first
// line of their tooltips, [left, width, text], hits those that match.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

function shown() {
  const name = (frame) => frame.querySelector("title").textContent.split("\n")[0];
  const boxes = [...document.querySelectorAll(".frames > svg")];
  const visible = boxes.filter((frame) => frame.style.display !== "none");
  return {
    told: document.querySelector(".told").textContent,
    frames: visible.map((frame) => {
      const box = frame.querySelector("rect").getBoundingClientRect();
      return [name(frame), box.left, box.width, frame.querySelector("text")?.textContent ?? ""];
    }),
    hits: visible.filter((frame) => frame.classList.contains("hit")).map(name),
    invalid: !document.querySelector("input").validity.valid,
  };
}

// The page is told of a new width when it is drawn the next time.
function drawn() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: chromium.args,
  headless: "shell",
});
const page = await browser.newPage();
const requests = [];
const problems = [];
page.on("request", (request) => requests.push(request.url()));
page.on("console", (message) => problems.push(message.text()));
page.on("pageerror", (error) => problems.push(error.message));
page.on("dialog", (dialog) => dialog.dismiss().then(() => problems.push(dialog.message())));
try {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { open, width, click, keys, type } = JSON.parse(line);
    if (open) requests.length = problems.length = 0;
    if (width) await page.setViewport({ width, height: 800 });
    if (open) await page.goto(pathToFileURL(open).href);
    await page.evaluate(drawn);
    for (const key of keys ?? []) await page.keyboard.press(key);
    if (type) await page.keyboard.type(type);
    for (const box of click ? await page.$$(".frames > svg") : []) {
      const title = await box.$eval("title", (one) => one.textContent.split("\n")[0]);
      if (title === click) {
        await box.click();
        break;
      }
    }
    console.log(JSON.stringify({ requests, problems, ...(await page.evaluate(shown)) }));
  }
} finally {
  await browser.close();
}
