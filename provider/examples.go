package provider

import "strings"

// examplesOf returns the examples of a row: see Provider.Examples.
func examplesOf(name string) []string {
	text := strings.TrimSpace(examples[name])
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// examples has a request for each cost and each resource of a published limit. An endpoint with
// limits that only answers state is not among them.
var examples = map[string]string{
	"alpaca": `
		GET /v2/orders = 1 request
		GET /v2/account = 1 request`,
	"anthropic": `
		POST /v1/messages {"model":"claude-fable-5","max_tokens":64,"messages":[]} = 1 request, its tokens`,
	"arxiv": `
		GET /api/query?search_query=all:electron = 1 request`,
	"atlassian": `
		GET /rest/api/3/issue/A-1 = 1 request
		GET /rest/api/3/myself = 1 request`,
	"binance-spot": `
		GET /api/v3/depth?symbol=A&limit=5000 = 250 weight
		GET /api/v3/depth?symbol=A&limit=1000 = 50 weight
		GET /api/v3/depth?symbol=A = 5 weight
		GET /api/v3/ticker/24hr = 80 weight
		GET /api/v3/ticker/24hr?symbol=A = 2 weight
		GET /api/v3/klines?symbol=A = 2 weight
		GET /api/v3/openOrders = 80 weight
		GET /api/v3/exchangeInfo = 20 weight
		GET /api/v3/ping = 1 weight
		POST /api/v3/order = 1 weight, 1 order
		POST /api/v3/orderList/oco = 1 weight, 2 orders`,
	"binance-futures": `
		GET /fapi/v1/depth?symbol=A&limit=1000 = 20 weight
		GET /fapi/v1/depth?symbol=A = 10 weight
		GET /fapi/v1/ticker/24hr = 40 weight
		GET /fapi/v1/klines?symbol=A&limit=1500 = 10 weight
		GET /fapi/v1/income = 30 weight
		GET /fapi/v1/ping = 1 weight
		POST /fapi/v1/order = 1 order`,
	"azure-openai": `
		POST /openai/deployments/d/chat/completions {"max_tokens":9,"messages":[]} = 1 request, its tokens`,
	"bybit": `
		GET /v5/market/tickers?category=spot = 1 request
		GET /v5/asset/transfer/query-asset-info = 1 request of 1/s GET /v5/asset/transfer/query-asset-info
		GET /v5/account/fee-rate?category=spot = 1 request of 5/s GET /v5/account/fee-rate
		GET /v5/order/realtime = 1 request of 10/s GET /v5/order/realtime
		POST /v5/order/create = 1 request of 10/s POST /v5/order/create
		POST /v5/asset/transfer/save-transfer-sub-member = 1 request of 20/s POST /v5/asset/transfer/save-transfer-sub-member
		GET /v5/spot-lever-token/order-record = 1 request of 50/s GET /v5/spot-lever-token/order-record`,
	"cloudflare": `
		GET /client/v4/zones = 1 request
		GET /client/v4/accounts = 1 request`,
	"cme": `
		POST / = 1 request`,
	"cohere": `
		POST /v2/chat {"model":"command-a-03-2025","messages":[]} = 1 request`,
	"coinbase": `
		GET /orders = 1 request of private
		GET /accounts = 1 request of private
		GET /fills?order_id=A = 1 request of fills
		GET /loans = 1 request of loans
		GET /products/BTC-USD/book = 1 request of address public
		GET /currencies = 1 request of address public`,
	"crossref": `
		GET /works/10.5555/12345678 = 1 request`,
	"deepseek": `
		POST /chat/completions {"model":"deepseek-chat","messages":[]} = 1 request`,
	"deribit": `
		GET /api/v2/private/get_positions = 1 request
		GET /api/v2/public/get_order_book?instrument_name=BTC-PERPETUAL = 1 request`,
	"discord": `
		POST /api/v10/channels/1/messages = 1 request of POST channel 1 messages
		POST /api/v10/channels/2/messages = 1 request of POST channel 2 messages
		GET /api/v10/guilds/1/roles = 1 request of GET guild 1`,
	"docker-hub": `
		GET /v2/library/alpine/manifests/latest = 1 request
		GET /v2/library/debian/manifests/latest = 1 request`,
	"etherscan": `
		GET /api?module=account = 1 request
		GET /api?module=block = 1 request`,
	"fastly": `
		POST /service/1/purge_all = 1 request`,
	"gemini": `
		POST /v1beta/models/gemini-2.5-flash:generateContent {"contents":[]} = 1 request, its tokens`,
	"github": `
		GET /user = 1 request of core
		GET /repos/a/b/issues = 1 request of core; without a key, of address core
		GET /search/issues?q=x = 1 request of search; without a key, of address search
		GET /search/code?q=x = 1 request of code_search
		POST /graphql {"query":"{viewer{login}}"} = 1 weight of graphql
		GET /rate_limit = 1 request`,
	"gitlab": `
		GET /api/v4/user = 1 request
		GET /api/v4/projects = 1 request of GET projects; without a key, of address GET projects
		GET /api/v4/projects/1/jobs = 1 request of 600/min GET projects/ID/jobs
		GET /api/v4/projects/7 = 1 request of 400/min GET projects/ID
		GET /api/v4/users/1/projects = 1 request of 300/min GET users/ID/projects
		GET /api/v4/users/1/status = 1 request of 240/min GET users/ID/status
		GET /api/v4/groups = 1 request of 200/min GET groups
		GET /api/v4/users/1/keys = 1 request of 120/min GET users/ID/keys
		GET /api/v4/users/1/followers = 1 request of 100/min GET users/ID/followers
		POST /api/v4/projects/1/issues/2/notes = 1 request of 60/min POST projects/ID/notes`,
	"google": `
		GET /drive/v3/files = 1 request
		GET /youtube/v3/videos?id=A = 1 request`,
	"groq": `
		POST /openai/v1/chat/completions {"model":"m","max_tokens":9,"messages":[]} = 1 request, its tokens`,
	"heroku": `
		GET /apps = 1 request
		GET /account = 1 request`,
	"hubspot": `
		GET /crm/v3/objects/contacts = 1 request
		GET /crm/v3/objects/deals = 1 request
		POST /crm/v3/objects/contacts/search = 1 request of search
		POST /crm/v3/objects/deals/search = 1 request of search`,
	"huggingface": `
		GET /api/models = 1 request`,
	"kraken": `
		POST /0/private/Balance = 1 weight
		POST /0/private/Ledgers = 2 weight
		POST /0/private/AddOrder = 1 request
		GET /0/public/Time = 1 request of address public
		GET /0/public/Trades?pair=A = 1 request of address public /0/public/Trades A
		GET /0/public/Trades?pair=B = 1 request of address public /0/public/Trades B
		GET /0/public/OHLC?pair=A = 1 request of address public /0/public/OHLC A`,
	"linear": `
		POST /graphql {"query":"{viewer{id}}"} = 1 request`,
	"microsoft-graph": `
		GET /v1.0/me/messages = 1 request`,
	"mistral": `
		POST /v1/chat/completions {"model":"m","max_tokens":9,"messages":[]} = 1 request, its tokens`,
	"monday": `
		POST /v2 {"query":"{me{id}}"} = 1 request`,
	"notion": `
		GET /v1/users = 1 request
		POST /v1/search = 1 request`,
	"okta": `
		GET /api/v1/users = 1 request
		GET /api/v1/groups = 1 request`,
	"okx": `
		GET /api/v5/market/exchange-rate = 1 request of 1/2s GET /api/v5/market/exchange-rate
		GET /api/v5/asset/asset-valuation = 1 request of 2/2s GET /api/v5/asset/asset-valuation
		POST /api/v5/asset/transfer = 1 request of 4/2s POST /api/v5/asset/transfer
		GET /api/v5/account/config = 1 request of 5/2s GET /api/v5/account/config
		GET /api/v5/account/balance = 1 request of 10/2s GET /api/v5/account/balance
		GET /api/v5/public/funding-rate?instId=A = 1 request of 10/2s GET /api/v5/public/funding-rate A
		GET /api/v5/public/funding-rate?instId=B = 1 request of 10/2s GET /api/v5/public/funding-rate B
		GET /api/v5/market/books-lite?instId=A = 1 request of 12/2s GET /api/v5/market/books-lite
		POST /api/v5/trade/cancel-batch-orders = 1 request of 15/2s POST /api/v5/trade/cancel-batch-orders
		GET /api/v5/market/ticker?instId=A = 1 request of 20/2s GET /api/v5/market/ticker
		GET /api/v5/market/books?instId=A = 1 request of 40/2s GET /api/v5/market/books
		GET /api/v5/market/trades?instId=A = 1 request of 100/2s GET /api/v5/market/trades
		POST /api/v5/trade/order = 1 order of 60/2s POST /api/v5/trade/order
		POST /api/v5/trade/batch-orders [` + strings.Repeat(`{"instId":"A"},`, 20) + `{}] = 20 orders of orders/2s POST ` +
		`/api/v5/trade/batch-orders`,
	"openai": `
		POST /v1/chat/completions {"model":"gpt-4o","max_tokens":64,"messages":[]} = 1 request, its tokens`,
	"openrouter": `
		POST /api/v1/chat/completions {"model":"m:free","messages":[]} = 1 request`,
	"perplexity": `
		POST /chat/completions {"model":"sonar","messages":[]} = 1 request`,
	"reddit": `
		GET /api/v1/me = 1 request
		GET /r/golang/new = 1 request`,
	"replicate": `
		POST /v1/predictions = 1 request
		GET /v1/predictions = 1 request`,
	"riot": `
		GET /lol/status/v4/platform-data = 1 request
		GET /lol/champion-mastery/v4/scores = 1 request`,
	"sec-edgar": `
		GET /submissions/CIK0000320193.json = 1 request`,
	"shopify": `
		GET /admin/api/2025-01/products.json = 1 request of rest
		GET /admin/api/2025-01/orders.json = 1 request of rest`,
	"slack": `
		POST /api/conversations.list = 1 request
		POST /api/users.list = 1 request`,
	"spotify": `
		GET /v1/me = 1 request
		GET /v1/artists/A = 1 request`,
	"strava": `
		POST /api/v3/activities = 1 request
		POST /api/v3/uploads = 1 request`,
	"stripe": `
		POST /v1/charges = 1 request
		GET /v1/customers = 1 request`,
	"trello": `
		GET /1/boards/A = 1 request`,
	"twilio": `
		POST /2010-04-01/Accounts/AC1/Messages.json = 1 request`,
	"twitch": `
		GET /helix/users = 1 request
		GET /helix/streams = 1 request`,
	"x": `
		GET /2/tweets?ids=1 = 1 request
		GET /2/users/me = 1 request`,
	"zendesk": `
		GET /api/v2/users = 1 request
		GET /api/v2/incremental/tickets?start_time=1 = 1 request of incremental export
		GET /api/v2/tickets/5/comments?page=600 = 1 request of deep pages of tickets
		PUT /api/v2/tickets/1.json = 1 request of updates of tickets`,
}
