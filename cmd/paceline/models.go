package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/provider"
)

func newModels() *cobra.Command {
	output := "text"
	c := &cobra.Command{
		Use:   "models [NAME …]",
		Short: "Print published prices, sizes and batch APIs of models, with their date",
		Long: "Print the published facts about models, with their date: prices in USD per million tokens, sizes, and " +
			"batch APIs.\n\n" +
			"NAME is a provider (openai) or the beginning of a model's name (gpt-5). Without a NAME, all models are " +
			"printed. `run` takes the " +
			"prices of its plan\n" +
			"and summary from here, unless --price-input and --price-output are given.",
		Example: "  paceline models anthropic\n  paceline models gpt-5 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := modelsOf(args)
			if err != nil {
				return err
			}
			if output == "json" {
				return cli.WriteJSON(cmd.OutOrStdout(), found)
			}
			return printModels(cmd.OutOrStdout(), found)
		},
	}
	cli.OutputFlag(c, &output, "text", "json")
	return c
}

// providerModels is the output in JSON. Later versions only add fields.
type providerModels struct {
	Provider string        `json:"provider"`
	AsOf     string        `json:"as_of"`
	Models   []pricedModel `json:"models"`
	Batch    *ownBatch     `json:"batch,omitempty"`
}

type pricedModel struct {
	Name      string  `json:"name"`
	Input     float64 `json:"usd_per_million_input"`
	Output    float64 `json:"usd_per_million_output,omitempty"`
	Cached    float64 `json:"usd_per_million_cached_input,omitempty"`
	Context   int64   `json:"context_tokens,omitempty"`
	MaxOutput int64   `json:"max_output_tokens,omitempty"`
	Note      string  `json:"note,omitempty"`
}

type ownBatch struct {
	Discount    float64 `json:"discount"`
	WithinHours float64 `json:"within_hours"`
	Requests    int64   `json:"max_requests,omitempty"`
	Bytes       int64   `json:"max_bytes,omitempty"`
	Docs        string  `json:"docs"`
}

// modelsOf returns the models of the providers in args, and those whose names begin with an
// argument.
func modelsOf(args []string) ([]providerModels, error) {
	var found []providerModels
	used := make([]bool, len(args))
	for _, p := range provider.Providers() {
		f := providerModels{Provider: p.Name, AsOf: p.ModelsAsOf}
		for _, m := range p.Models {
			wanted := len(args) == 0
			for i, a := range args {
				if known, ok := provider.LookupModel(p.Name, a); ok && known.Name == m.Name || a == p.Name || a != "" &&
					strings.HasPrefix(m.Name, a) {
					wanted, used[i] = true, true
				}
			}
			if wanted {
				f.Models = append(f.Models, pricedModel{m.Name, m.Input, m.Output, m.Cached, m.Context, m.MaxOutput, m.Note})
			}
		}
		if b := p.Batch; b != nil {
			f.Batch = &ownBatch{b.Discount, b.Within.Hours(), b.Requests, b.Bytes, b.Docs}
		}
		if len(f.Models) > 0 {
			found = append(found, f)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, cli.Usage(fmt.Errorf("%q: no provider with published models, and no model begins so; paceline models "+
			"lists all", args[i]))
	}
	return found, nil
}

func printModels(out io.Writer, found []providerModels) error {
	for i, p := range found {
		if i > 0 {
			fmt.Fprintln(out)
		}
		title := fmt.Sprintf("%s, USD per million tokens, as of %s", p.Provider, p.AsOf)
		if b := p.Batch; b != nil {
			title += fmt.Sprintf("; its batch API saves %.0f %% and takes up to %.0f h (%s)", b.Discount*100, b.WithinHours,
				b.Docs)
		}
		fmt.Fprintln(out, screen.Wrap(title, screen.TableWidth, ""))
		t := screen.Table{Right: true}
		t.Head("input", "output", "cached", "context", "max output", "model")
		for _, m := range p.Models {
			name := m.Name
			if m.Note != "" {
				name += " (" + m.Note + ")"
			}
			t.Row(usd(m.Input), usd(m.Output), usd(m.Cached), size(m.Context), size(m.MaxOutput), name)
		}
		if err := t.Write(out, screen.TableWidth); err != nil {
			return err
		}
	}
	return nil
}

// usd writes a price: a dash if it is unknown or zero.
func usd(v float64) string {
	if v == 0 {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func size(n int64) string {
	if n == 0 {
		return "–"
	}
	return strconv.FormatInt(n, 10)
}
