const crypto = require("crypto"), fs = require("fs"), zlib = require("zlib");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
if (!isMainThread) {
  let sum = 0;
  for (let i = 0; i < 2e5; i++) sum = (sum * 31 + i * workerData) % 1000003;
  parentPort.postMessage(sum);
} else {
  const text = fs.readFileSync("words.txt", "utf8");
  console.log(crypto.createHash("sha256").update(text).digest("hex"));
  console.log(zlib.gunzipSync(zlib.gzipSync(text)).length === text.length);
  const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
  console.log(fib(22), text.split(/\s+/).map((w) => w.length).reduce((a, b) => a + b, 0));
  const one = (n) => new Promise((resolve) => new Worker(__filename, { workerData: n }).on("message", resolve));
  Promise.all([one(3), one(5)]).then((sums) => { console.log(sums); process.exitCode = 4; });
}
