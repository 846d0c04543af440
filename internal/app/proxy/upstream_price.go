package proxy

import (
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// price is the price of a model at an upstream, as configured or as its provider has published it.
func (u *Upstream) price(p transport.Partition, model string) (provider.ModelInfo, bool) {
	for _, name := range [...]string{model, ""} {
		if i := slices.IndexFunc(u.Prices, func(p Price) bool { return p.Model == name }); i >= 0 {
			return provider.ModelInfo{Name: model, Input: u.Prices[i].Input, Output: u.Prices[i].Output,
				Cached: u.Prices[i].Cached}, true
		}
	}
	if i := u.targetOf(p); i >= 0 {
		return provider.PriceOf(u.at(i).Seller(), model)
	}
	return provider.PriceOf(u.Seller(), model)
}

// Seller is the provider whose published prices hold, by its name in package provider; empty: none.
func (u *Upstream) Seller() string {
	if len(u.Targets) > 0 {
		return u.at(0).Seller()
	}
	if u.Provider != nil {
		return u.Provider.Name()
	}
	if d, ok := provider.ForHost(u.To.Host); ok {
		return d.Name()
	}
	if who, ok := provider.Publisher(u.Preset); ok {
		return who.Name
	}
	return ""
}

// cost adds the price of each request to its cost, and what its client says.
func (u *Upstream) cost() func(*http.Request, limit.Cost) limit.Cost {
	each := int64(math.Ceil(u.RequestPrice * 1e6))
	return func(r *http.Request, c limit.Cost) limit.Cost {
		c[limit.Money] += each
		return visitOf(r.Context()).over(c)
	}
}

// mostPrice is above every real price, in USD per million tokens, and for a request.
const mostPrice = 1e6

func (u *Upstream) checkPrices() *ConfigError {
	for i, p := range u.Prices {
		at := fmt.Sprintf(".Prices[%d]", i)
		if slices.IndexFunc(u.Prices, func(o Price) bool { return o.Model == p.Model }) < i {
			return wrong(at+".Model", "there are two prices of %q", p.Model)
		}
		if !(p.Input >= 0 && p.Input <= mostPrice && p.Output >= 0 && p.Output <= mostPrice) {
			return wrong(at, "%v and %v, expected USD per million tokens, 0 or more", p.Input, p.Output)
		}
		if !(p.Cached >= 0 && p.Cached <= p.Input) {
			return wrong(at+".Cached",
				"%v, expected USD per million tokens, 0 or more, and no more than the %v of other input", p.Cached, p.Input)
		}
	}
	if !(u.RequestPrice >= 0 && u.RequestPrice <= mostPrice) {
		return wrong(".RequestPrice", "%v, expected USD, 0 or more", u.RequestPrice)
	}
	return nil
}

// AllRates are all limits of clients, of keys and of the upstream itself.
func (u *Upstream) AllRates(c *Config) (all []rate.Limit) {
	for _, g := range u.Targets {
		for _, k := range g.Keys {
			all = append(all, k.Limits...)
		}
		for _, l := range g.Limits {
			all = append(all, l.Limit)
		}
	}
	all = append(all, c.Clients.Default.Limits...)
	for _, k := range c.Clients.List {
		all = append(all, k.Limits...)
	}
	for _, k := range u.Keys {
		all = append(all, k.Limits...)
	}
	for _, l := range u.Limits {
		all = append(all, l.Limit)
	}
	return all
}
