package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
)

//go:embed flag_file.yaml
var initialFlags []byte

// flagFile has flags of a verb in a file that a team shares. They hold where neither the command
// line nor the environment has them.
type flagFile struct {
	name    string   // --flags
	without []string // flags of the file that do not hold
	cmd     *cobra.Command
	instead cli.Initial
	lines   map[string]int // of the flags that are set by the file
}

// newRunWithFile is paceline run with --flags. The name is not --config, since PACELINE_CONFIG may be
// the file of a proxy.
func newRunWithFile() *cobra.Command {
	c := newRun()
	f := &flagFile{cmd: c, lines: map[string]int{}}
	f.instead = cli.Initial{
		Verb: "paceline run", What: "a file of flags with comments", Files: "files of flags",
		Next: "paceline run --flags %s --dry-run requests.jsonl", Text: initialFlags,
		Schema: func() []byte { return yamlfile.Schema("paceline run", yamlfile.Object(f.fields())) },
	}
	f.instead.Add(c.Flags())
	c.Flags().StringVar(&f.name, "flags", "", "file of flags for what neither the command line nor the environment has; see paceline run --init")
	c.Flags().StringSliceVar(&f.without, "without", nil,
		"flags that do not hold although the file of --flags has them, A,B")
	args, run := c.Args, c.RunE
	c.Args = func(cmd *cobra.Command, all []string) error {
		if f.instead.Wanted() {
			return f.instead.Check(all)
		}
		return args(cmd, all)
	}
	c.RunE = func(cmd *cobra.Command, all []string) error {
		switch {
		case f.instead.Wanted():
			return f.instead.Run(cmd, all)
		case len(f.without) > 0 && f.name == "":
			return cli.Usage(errors.New("--without is for flags of a file, expected --flags FILE beside it"))
		case f.name != "":
			if err := f.read(); err != nil {
				return cli.Exit(cli.ExitConfig, err)
			}
		}
		return f.locate(run(cmd, all))
	}
	return c
}

// ofFileItself are flags that no file has.
var ofFileItself = []string{"version", "flags", "without", "init", "schema"}

// fields are the flags that a file may have.
func (f *flagFile) fields() (all []yamlfile.Field) {
	f.cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !cli.IsHelp(flag) && !slices.Contains(ofFileItself, flag.Name) {
			all = append(all, yamlfile.Key(flag.Name, yamlfile.Part(formOf(flag), true, (*flagReader).set), flag.Usage))
		}
	})
	return all
}

// formOf is what a flag's value looks like in a file.
func formOf(flag *pflag.Flag) yamlfile.Form {
	switch flag.Value.Type() {
	case "bool":
		return yamlfile.ASwitch
	case "int":
		return yamlfile.Form{"type": "integer"}
	case "float64":
		return yamlfile.ANumber
	case "stringToString":
		return yamlfile.Form{"type": "object", "additionalProperties": yamlfile.AText}
	}
	if isList(flag) {
		return yamlfile.Form{"anyOf": []yamlfile.Form{yamlfile.AText, yamlfile.ListOf(yamlfile.AText)}}
	}
	return yamlfile.AText
}

func isList(flag *pflag.Flag) bool {
	t := flag.Value.Type()
	return strings.HasSuffix(t, "Array") || strings.HasSuffix(t, "Slice")
}

// flagReader reads the file of a flagFile.
type flagReader struct{ *yamlfile.Reader }

// read sets the flags that are in the file and not set yet.
func (f *flagFile) read() error {
	in, err := os.Open(f.name)
	if err != nil {
		return fmt.Errorf("--flags: %w", cli.NoSuchFile(f.name, err))
	}
	defer in.Close()
	r := &flagReader{yamlfile.New(f.name)}
	fields := f.fields()
	root, err := r.Root(in, "file of flags", yamlfile.Keys(fields))
	if root != nil {
		yamlfile.Mapping(r, root, "", fields, f)
	}
	for _, name := range f.without {
		if _, is := f.lines[name]; !is && err == nil && r.Ok() {
			err = fmt.Errorf("--without %s: %s has no such flag", name, f.name)
		}
	}
	return errors.Join(err, r.Err())
}

// set sets a flag to a value of the file.
func (r *flagReader) set(n *yaml.Node, key string, f *flagFile) {
	flag := f.cmd.Flag(key)
	values := []string{n.Value}
	switch {
	case slices.Contains(f.without, key):
		f.lines[key] = n.Line
		return
	case flag.Changed:
		return
	case n.Kind == yaml.SequenceNode && isList(flag):
		values = nil
		for item := range yamlfile.Items(r, n, key) {
			values = append(values, r.Text(item, key))
		}
	case n.Kind == yaml.MappingNode && flag.Value.Type() == "stringToString":
		values = nil
		for i := 0; i+1 < len(n.Content); i += 2 {
			values = append(values, n.Content[i].Value+"="+r.Text(yamlfile.Resolved(n.Content[i+1]), key))
		}
	case n.Kind == yaml.MappingNode && (key == "query" || key == "header") && len(n.Content) > 0:
		between := map[string]string{"query": "=", "header": ": "}[key]
		r.Refuse(n, "%s: a mapping is no text: expected as on the command line, such as [\"%s%sVALUE\"]", key,
			n.Content[0].Value, between)
	default:
		r.Text(n, key)
	}
	for _, v := range values {
		if !r.Ok() {
			return
		}
		if err := f.cmd.Flags().Set(key, v); err != nil {
			r.Refuse(n, "%v", f.cmd.FlagErrorFunc()(f.cmd, err))
		}
	}
	f.lines[key] = n.Line
}

// locate names the line of the flag that an error begins with.
func (f *flagFile) locate(err error) error {
	if err == nil {
		return nil
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	name := strings.TrimPrefix(strings.TrimRight(word, ":,"), "--")
	line, ok := f.lines[name]
	if !ok || !strings.HasPrefix(word, "--") {
		return err
	}
	err = fmt.Errorf("%w (--%s is from %s:%d)", err, name, f.name, line)
	if cli.Code(err) == cli.ExitUsage {
		return cli.Exit(cli.ExitConfig, err)
	}
	return err
}
