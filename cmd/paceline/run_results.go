package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// resultFlags say where answers go, in addition to --out.
type resultFlags struct {
	outDir  string
	maxFile byteSize

	selection, format string
	ordered           bool
}

func (f *resultFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.outDir, "out-dir", "",
		"folder for the bodies: a file for each answer, named by its id and its Content-Type. results.jsonl has the "+
			"rest. The same command again resumes there")
	f.maxFile = 1 << 30
	p.StringVar(&f.selection, "select", "",
		"fields to write instead of whole results, as jq expressions: 'id=.id, name=.body.name' or '{id, "+
			"name: .body.name}'")
	p.StringVar(&f.format, "out-format", "",
		"with --select: jsonl, csv or tsv; sqlite and parquet go without, too (default: as --out ends, or jsonl)")
	p.BoolVar(&f.ordered, "ordered", false, "results in the order of the input")
	p.Var(&f.maxFile, "max-file", "with --out-dir: longest body; a longer one is a dead letter")
}

// config sets the results of the run as in the flags. out is the value of --out.
func (f *resultFlags) config(cmd *cobra.Command, out *string, c *run.Config) error {
	if err := noSheet(*out); err != nil {
		return err
	}
	if err := f.shape(cmd, *out, c); err != nil {
		return err
	}
	switch {
	case f.outDir != "" && f.selection != "":
		return errors.New("--out-dir with --select: a file has all of an answer, a table some of it; expected one of them")
	case f.outDir != "" && f.ordered:
		return errors.New("--out-dir with --ordered: files have no order")
	case f.outDir == "":
		if cmd.Flag("out-dir").Changed {
			return errors.New("--out-dir is empty, expected a folder")
		}
		if cmd.Flag("max-file").Changed {
			return errors.New("--max-file is for the files of --out-dir; without it, --max-response bounds what is kept of a " +
				"body")
		}
		return nil
	case cmd.Flag("out").Changed || *out != "-": // -o FILE sets *out without the flag
		return fmt.Errorf("--out-dir with --out: the results without their bodies are in %s", output.IndexOf(f.outDir))
	}
	if what := output.NoFolder(f.outDir); what != "" {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("--out-dir %s is %s, expected a folder", f.outDir, what))
	}
	*out = output.IndexOf(f.outDir)
	c.OutDir, c.MaxFile = f.outDir, int64(f.maxFile)
	return nil
}

// noSheet refuses a name whose ending promises another form than results have.
func noSheet(out string) error {
	switch end := strings.ToLower(filepath.Ext(out)); end {
	case ".xlsx", ".xls", ".ods", ".arrow", ".feather", ".avro", ".duckdb":
		return fmt.Errorf("--out %s: results are lines of JSON, a table (.parquet, or .db of SQLite), or with --select a "+
			".csv or .tsv; expected such as --out results.parquet", out)
	}
	return nil
}

// batches returns an error if one of the flags does not go with a batch for language models.
func (f *resultFlags) batches(okStatus []int) error {
	if len(okStatus) > 0 {
		return errors.New("--ok-status with a batch for language models: its results are done by a status 2xx alone; " +
			"expected the command without it")
	}
	if f.outDir == "" {
		return nil
	}
	return errors.New("--out-dir does not go with batches for language models, whose results are lines in the provider's " +
		"format; expected --select, such as --select 'answer=.body.choices[0].message.content'")
}

// shape reads --select and the flags that go with it.
func (f *resultFlags) shape(cmd *cobra.Command, out string, c *run.Config) error {
	c.Ordered = f.ordered
	ending := strings.ToLower(strings.TrimPrefix(filepath.Ext(out), "."))
	format := output.RowFormat(f.format)
	if format == "" {
		format = output.JSONL
		switch ending {
		case "csv", "tsv":
			format = output.RowFormat(ending)
		case "db", "sqlite", "sqlite3":
			format = output.SQLite
		case "parquet":
			format = output.Parquet
		}
	}
	switch format {
	case output.JSONL, output.CSV, output.TSV:
	case output.SQLite, output.Parquet:
		if err := f.table(out, format); err != nil {
			return err
		}
		c.Table = format
	default:
		return fmt.Errorf("--out-format %q, expected jsonl, csv, tsv, sqlite or parquet", f.format)
	}
	if f.selection == "" {
		switch {
		case cmd.Flag("select").Changed:
			return errors.New("--select is empty, expected such as 'id=.id, name=.body.name'")
		case format == output.JSONL, c.Table != "":
			return nil
		case f.format != "":
			return fmt.Errorf("--out-format %s without --select: a table needs columns, expected such as --select 'id=.id, "+
				"name=.body.name'", format)
		}
		return fmt.Errorf("--out %s without --select: a table needs columns, expected such as --select 'id=.id, "+
			"name=.body.name'; --out-format jsonl writes whole results there", out)
	}
	shape, err := output.CompileShape(f.selection, format)
	if err != nil {
		return fmt.Errorf("--select %w", err)
	}
	c.Shape = shape
	if format != output.JSONL && out == "-" && (c.Dead == "" || c.Dead == "-") {
		return fmt.Errorf("--out-format %s on standard output has no place for dead letters, expected --dead FILE", format)
	}
	return nil
}

// table returns an error if results cannot go into a table.
func (f *resultFlags) table(out string, format output.RowFormat) error {
	ending := map[output.RowFormat]string{output.SQLite: "db", output.Parquet: "parquet"}[format]
	switch {
	case out == "-":
		return fmt.Errorf("--out-format %s needs a file, expected such as --out results.%s", format, ending)
	case f.ordered:
		return fmt.Errorf("--ordered with --out %s: a table has no order; expected ORDER BY in your query", out)
	}
	return nil
}
