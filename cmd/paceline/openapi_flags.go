package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/input"
)

// openAPIFlags make the requests of rows by the description of an API.
type openAPIFlags struct {
	file, operation, server string
	made                    *input.Operation // nil: without --openapi
}

// mostDescribed is the size of a description that is read, in bytes. The largest known ones have 10 MB.
const mostDescribed = 64 << 20

func (f *openAPIFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.file, "openapi", "",
		"description of an API (OpenAPI 3.0 or 3.1, JSON or YAML). "+
			"Columns are parameters by their names, of --operation")
	p.StringVar(&f.operation, "operation", "",
		"with --openapi: the operation of each row, such as getPetById, or 'GET /pets/{petId}'")
	p.StringVar(&f.server, "server", "", "with --openapi: address of the API (default: its first server)")
}

// config reads the description, and finds the operation.
func (f *openAPIFlags) config(cmd *cobra.Command) error {
	for _, name := range []string{"openapi", "operation", "server"} {
		flag := cmd.Flag(name)
		if flag == nil || !flag.Changed {
			continue
		}
		if backlog := cmd.Flag("backlog"); backlog != nil && backlog.Changed {
			return cli.Usage(fmt.Errorf("--%s with --backlog: a backlog takes rows with --url; expected that", name))
		}
		if f.file == "" {
			return cli.Usage(fmt.Errorf("--%s without a description of an API, expected --openapi FILE", name))
		}
	}
	if f.file == "" {
		return nil
	}
	for _, name := range []string{"url", "method", "body", "prompt-column"} {
		if flag := cmd.Flag(name); flag != nil && flag.Changed {
			return cli.Usage(fmt.Errorf("--%s with --openapi, which has it for each operation; "+
				"expected one of them", name))
		}
	}
	api, err := readAPI(f.file)
	if err != nil {
		return err
	}
	if f.operation == "" {
		return cli.Usage(fmt.Errorf("--openapi %s without --operation, expected one of them:\n%s", f.file,
			operations(api)))
	}
	o, err := api.Operation(f.operation)
	if err == nil {
		f.made, err = api.Plan(o, f.server)
	}
	if err != nil {
		return cli.Usage(fmt.Errorf("%s: %w", f.file, err))
	}
	return nil
}

// readAPI reads the description of an API.
func readAPI(name string) (*input.API, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, cli.NoSuchFile(name, err))
	}
	file.Close()
	var api *input.API
	text, err := bounded(mostDescribed)(name)
	if err == nil {
		api, err = input.ReadAPI(text)
	}
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", name, err))
	}
	return api, nil
}

// operations lists the operations of an API, a line each.
func operations(api *input.API) string {
	const most, width = 40, 60
	var b strings.Builder
	for i, o := range api.Operations {
		if i == most {
			fmt.Fprintf(&b, "  and %d more\n", len(api.Operations)-most)
			break
		}
		line := "  " + o.Name
		if call := o.Method + " " + o.Path; call != o.Name {
			line += "  " + call
		}
		if summary := []rune(strings.Join(strings.Fields(o.Summary), " ")); len(summary) > 0 {
			line += "  " + string(summary[:min(len(summary), width)])
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// isAPI is the error for an input that describes an API: what its operations are, and a command that works.
func isAPI(in *runInput, limits string) error {
	api, err := readAPI(in.name)
	if err != nil {
		return err
	}
	first := api.Operations[0]
	made, err := api.Plan(&first, "https://api.example.com")
	if err != nil {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", in.name, err))
	}
	columns := "any columns"
	if needs := made.Needs(); len(needs) > 0 {
		columns = "the columns " + strings.Join(needs, ", ")
	}
	name := first.Name
	if strings.ContainsAny(name, " {}") {
		name = "'" + name + "'"
	}
	return cli.Usage(fmt.Errorf("%s describes an API, and has no requests. Its operations are:\n%s\nA table with %s "+
		"has them:\n  paceline run rows.csv%s --openapi %s --operation %s", in.name, operations(api), columns,
		limits, in.name, name))
}
