// Opens a page of `flame report --html` in headless Chromium, and says what it shows.
//
// Reads a line of JSON per step, {open: PATH, width, dark} or {click: SELECTOR}, and answers each
// with a line of JSON: {requests, problems, wide, paper, column, frames}. requests are the URLs that
// the page has loaded, problems what the browser complained of, wide whether the page is wider than
// the window, paper its background; column is the text of the cells of the first column of the table
// of kernels; frames are the boxes of the icicle by the first line of their tooltips, [left, width].
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

function shown() {
  const cells = document.querySelectorAll("#kernels table:first-of-type td:first-child");
  const frames = [...document.querySelectorAll("svg.icicle > svg")].map((frame) => {
    const box = frame.querySelector("rect").getBoundingClientRect();
    return [frame.querySelector("title").textContent.split("\n")[0], box.left, box.width];
  });
  return {
    wide: document.documentElement.scrollWidth > innerWidth,
    paper: getComputedStyle(document.body).backgroundColor,
    column: [...cells].map((cell) => (cell.querySelector("summary") ?? cell).textContent),
    frames,
  };
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
    const { open, width, dark, click } = JSON.parse(line);
    if (width) await page.setViewport({ width, height: 800 });
    const value = dark ? "dark" : "light";
    if (open) await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    if (open) await page.goto(pathToFileURL(open).href);
    if (click) await page.click(click);
    console.log(JSON.stringify({ requests, problems, ...(await page.evaluate(shown)) }));
  }
} finally {
  await browser.close();
}
