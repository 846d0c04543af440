package scenario

import (
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

type decoder struct {
	*yamlfile.Reader
	open func(string) (io.ReadCloser, error)
}

// scenario reads the mapping that the file is.
func (d *decoder) scenario(root *yaml.Node, s *fleet.Scenario) {
	yamlfile.Mapping(d, root, "", scenarioFields, s)
	server := yamlfile.Member(root, "server")
	if level := s.Server.Level; server != nil && level == 0 && !s.Server.Full && s.Server.Kind != fleet.Bucket &&
		s.Server.Kind != fleet.GCRA {
		if at := yamlfile.Member(server, "level"); at != nil && at.Value == "0" {
			d.Refuse(at, "level: 0 of a %v server: want 1 or more, or full", s.Server.Kind)
		}
	}
}

func strategies() []string { return append(strategy.Names(), fleet.Share().Name) }

// unit reads the name of a component of a limit.Cost.
func (d *decoder) unit(n *yaml.Node, what string) limit.Unit {
	return called[limit.Unit](d, n, what, "unit ")
}

// counting reads the name of a way in which servers count.
func (d *decoder) counting(n *yaml.Node, what string) fairshare.Kind {
	return called[fairshare.Kind](d, n, what, "kind ")
}

// called reads a value by what its String returns. The first value whose String begins with the
// text none ends the list.
func called[T interface {
	~uint8
	String() string
}](d *decoder, n *yaml.Node, what, none string) T {
	names := namesOf[T](none)
	return T(max(slices.Index(names, d.OneOf(n, what, names)), 0))
}

func (d *decoder) law(n *yaml.Node, what string) latency.Law {
	if n.Kind != yaml.ScalarNode {
		d.Refuse(n, "%s: %s is no latency law; accepted: %s", what, yamlfile.Show(n), latency.Forms)
		return latency.Law{}
	}
	l, err := latency.Parse(n.Value, d.open)
	if err != nil {
		d.Refuse(n, "%s: %s", what, strings.TrimPrefix(err.Error(), "latency: "))
	}
	return l
}

func (d *decoder) perSecond(n *yaml.Node, what string) float64 {
	count, per := d.Rate(n, what)
	if count == 0 {
		return 0
	}
	return float64(count) / per.Seconds()
}
