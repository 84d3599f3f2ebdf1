// Opens the app that flame serves, in headless Chromium, and says what its page shows.
//
// Reads a line of JSON per step, {open: URL}, {press: KEY} or {}, and answers each with a line of
// JSON: {colours, requests, closed}. colours counts the pixels of the page by "#rrggbb"; requests
// are the URLs that the page has loaded; closed says whether it shows that its app has ended.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import readline from "node:readline";

const SETTLED = 400; // milliseconds without anything new to draw

function countColours(image) {
  const canvas = document.createElement("canvas");
  return createImageBitmap(new Blob([Uint8Array.from(atob(image), (c) => c.charCodeAt(0))])).then(
    (bitmap) => {
      [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
      const context = canvas.getContext("2d");
      context.drawImage(bitmap, 0, 0);
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      const counts = {};
      for (let at = 0; at < data.length; at += 4) {
        const hex = [0, 1, 2].map((part) => data[at + part].toString(16).padStart(2, "0"));
        const colour = `#${hex.join("")}`;
        counts[colour] = (counts[colour] ?? 0) + 1;
      }
      return counts;
    },
  );
}

// The page when two pictures of it, some time apart, are the same.
async function settled(page) {
  let before = null;
  for (;;) {
    const picture = await page.screenshot({ encoding: "base64" });
    if (picture === before) return picture;
    before = picture;
    await new Promise((resolve) => setTimeout(resolve, SETTLED));
  }
}

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: chromium.args,
  headless: "shell",
  defaultViewport: { width: 1200, height: 700 },
});
const blank = await browser.newPage();
const page = await browser.newPage();
const requests = [];
page.on("request", (request) => requests.push(request.url()));
try {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { open, press, wait } = JSON.parse(line);
    if (open) await page.goto(open);
    if (open) await page.waitForSelector("body.-first-byte");
    if (press) await page.keyboard.press(press);
    if (wait) await page.waitForSelector(wait);
    const picture = await settled(page);
    const closed = (await page.$("body.-closed")) !== null;
    const colours = await blank.evaluate(countColours, picture);
    console.log(JSON.stringify({ colours, requests, closed }));
  }
} finally {
  await browser.close();
}
