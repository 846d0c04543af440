package config

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/provider"
)

// writtenCharge is a charge in a file.
type writtenCharge struct {
	On, Resource       string
	Cost, Else, Answer *node
	Learn              bool
}

var (
	costsByUnit = form{"type": "object", "additionalProperties": form{"type": []string{"integer", "string"}}}
	aCost       = form{"anyOf": []form{{"type": "string", "examples": []string{"250 weight"}}, costsByUnit}}
)

// charges reads what requests cost.
func (r *reader) charges(n *node, what string) (all []provider.Charge) {
	for item := range yamlfile.Items(r, n, what) {
		var w writtenCharge
		yamlfile.Mapping(r, item, what, chargeFields, &w)
		c := provider.Charge{On: w.On, Resource: w.Resource, Learns: w.Learn}
		c.Cost, c.Body = r.costs(w.Cost, "cost")
		switch plain, more := r.costs(w.Else, "else"); {
		case w.Else == nil:
			for unit := range c.Body {
				c.Cost = with(c.Cost, unit, 1)
			}
		case c.Body == nil:
			r.Refuse(w.Else, "else: of a cost without an expression: want the numbers in cost")
		case more != nil:
			r.Refuse(w.Else, "else: an expression: want numbers, such as 100 weight")
		default:
			for unit, amount := range plain {
				if c.Body[unit] == nil {
					r.Refuse(w.Else, "else: %s, which is no expression in cost: want those that are", unit)
				}
				c.Cost = with(c.Cost, unit, amount)
			}
		}
		var plain map[provider.Unit]int64
		if plain, c.Answer = r.costs(w.Answer, "answer"); plain != nil {
			r.Refuse(w.Answer, "answer: a number: want an expression by unit, such as {weight: .cost}")
		}
		if w.Learn && c.Answer == nil && r.Ok() {
			r.Refuse(item, "learn: of a charge without answer, which states what to learn")
		}
		if c.Cost == nil && c.Body == nil && c.Answer == nil && c.Resource == "" && r.Ok() {
			r.Refuse(item, "charges: the requests %q neither cost anything nor count in a resource: want cost, resource or "+
				"answer", c.On)
		}
		all = append(all, c)
	}
	return all
}

func with(all map[provider.Unit]int64, unit provider.Unit, n int64) map[provider.Unit]int64 {
	if all == nil {
		all = map[provider.Unit]int64{}
	}
	all[unit] = n
	return all
}

// costs reads "250 weight", or numbers and expressions by unit. A nil node has none.
func (r *reader) costs(n *node, what string) (plain map[provider.Unit]int64,
	found map[provider.Unit]provider.Expression) {
	switch {
	case n == nil:
		return nil, nil
	case n.Kind == yaml.ScalarNode:
		plain, err := charge.Amounts(n.Value)
		if err != nil {
			r.Refuse(n, "%s: %v", what, err)
		}
		return plain, nil
	case n.Kind != yaml.MappingNode || len(n.Content) == 0:
		r.Refuse(n, "%s: %s is no cost: want %s, or {weight: …}", what, yamlfile.Show(n), charge.AmountForms)
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], yamlfile.Resolved(n.Content[i+1])
		unit, err := charge.Unit(key.Value)
		switch {
		case err != nil:
			r.Refuse(key, "%s: %v", what, err)
		case plain[unit] != 0 || found[unit] != nil:
			r.Refuse(key, "%s: there are two costs in %s", what, unit)
		case value.Kind != yaml.ScalarNode:
			r.Refuse(value, "%s: %s is neither a number nor an expression", what, yamlfile.Show(value))
		case value.Tag == "!!int":
			amount, err := strconv.ParseInt(value.Value, 10, 64)
			if err == nil && amount > 0 && amount <= provider.MaxCount {
				plain = with(plain, unit, amount)
			} else {
				r.Refuse(value, "%s: %s is not a whole number of 1 or more", what, yamlfile.Show(value))
			}
		default:
			e, err := charge.Compile(value.Value)
			if err != nil {
				r.Refuse(value, "%s: %v", what, err)
				continue
			}
			if found == nil {
				found = map[provider.Unit]provider.Expression{}
			}
			found[unit] = e
		}
	}
	return plain, found
}
