// Calls of ccxt at an exchange for a time, 40 at once: node exchanges.mjs ID SYMBOL URL MILLISECONDS throttled|free.
// With "throttled", ccxt's own throttler is on. It prints one line, with the number of answers as size.
import ccxt from "ccxt";

const [id, symbol, url, ms, how] = process.argv.slice(2);
const exchange = new ccxt[id]({ enableRateLimit: how === "throttled", maxRetriesOnFailure: 0, timeout: 60_000 });
exchange.urls.api = JSON.parse(JSON.stringify(exchange.urls.api).replace(/https:\/\/[^/"]+/g, url));
await exchange.loadMarkets();
let answered = 0, error = null;
const end = Date.now() + Number(ms);
const ask = async () => {
  while (Date.now() < end && !error) {
    try {
      await exchange.fetchOrderBook(symbol);
      if (Date.now() < end) answered++;
    } catch (e) {
      error = { status: 0, message: String(e.message) };
    }
  }
};
await Promise.race([Promise.all([...Array(40)].map(ask)), new Promise((done) => setTimeout(done, Number(ms) + 50))]);
console.log(JSON.stringify({ sdk: id, call: "book", size: answered, error }));
process.exit(0);
