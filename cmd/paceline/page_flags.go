package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
)

// pageFlags say how an answer names the next page.
type pageFlags struct {
	next, while string
	most        int
	asked       bool // --max-pages was given
}

func (f *pageFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.next, "next", "",
		"follow pages: link (the Link field's rel=next), a JSON pointer to a URL in the answer (/links/next), NAME=POINTER "+
			"for a cursor that goes into the query (cursor=/meta/next_cursor), or body:POINTER=POINTER for one that goes into "+
			"the body (body:/start_cursor=/next_cursor); each page is a request of its own")
	p.StringVar(&f.while, "next-while", "",
		"with --next: JSON pointer to a value that is true on all pages but the last (/has_more)")
	p.IntVar(&f.most, "max-pages", 1000, "with --next: most pages of a line; a run with a larger number goes on there")
}

func (f *pageFlags) config(cmd *cobra.Command, c *run.Config) (err error) {
	f.asked = cmd.Flag("max-pages").Changed
	switch {
	case f.next == "" && (f.while != "" || f.asked):
		return errors.New("--next-while and --max-pages are for --next, which is not given")
	case f.next == "":
		return nil
	case f.most < 1:
		return fmt.Errorf("--max-pages %d, expected at least 1", f.most)
	}
	if c.Next, err = sending.ParseNext(f.next, f.while); err != nil {
		return fmt.Errorf("--next %w", err)
	}
	if name := c.Next.Param(); slices.ContainsFunc(c.Query, func(t format.Template) bool { return t.Name() == name }) {
		return fmt.Errorf("--query %s=… and --next %s=…: the first would take the place of every cursor", name, name)
	}
	c.MaxPages = f.most
	return nil
}
