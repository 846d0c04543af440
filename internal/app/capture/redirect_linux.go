package capture

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// everywhere makes every address local, by the loopback device. Each connection arrives then on this
// machine, and redirect leads it to one port.
func everywhere() error {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	const lo = 1 // the loopback device is the first of each namespace
	up := binaryutil.NativeEndian.PutUint32(unix.IFF_UP)
	link := append([]byte{unix.AF_UNSPEC, 0, 0, 0}, binaryutil.NativeEndian.PutUint32(lo)...) // struct ifinfomsg
	link = append(append(link, up...), up...)
	if err := ask(c, unix.RTM_NEWLINK, 0, link); err != nil {
		return fmt.Errorf("the loopback device: %w", err)
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		route := []byte{family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
		by, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.RTA_OIF, Data: binaryutil.NativeEndian.PutUint32(lo)}})
		if err != nil {
			return err
		}
		err = ask(c, unix.RTM_NEWROUTE, netlink.Create, append(route, by...))
		if err != nil && family == unix.AF_INET { // without IPv6 there is nothing to lead
			return fmt.Errorf("the route of all addresses: %w", err)
		}
	}
	return nil
}

func ask(c *netlink.Conn, kind netlink.HeaderType, flags netlink.HeaderFlags, data []byte) error {
	_, err := c.Execute(netlink.Message{Header: netlink.Header{Type: kind, Flags: flags | netlink.Request | netlink.Acknowledge}, Data: data})
	return err
}

// redirect leads all connections to a port, but those to this machine and to its resolver. Of this
// machine's ports, those in local are led there, too.
func redirect(port uint16, local []uint16) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "paceline"})
	chain := c.AddChain(&nftables.Chain{Name: "out", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
	rule := func(parts ...[]expr.Any) {
		all := tcp()
		for _, p := range parts {
			all = append(all, p...)
		}
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: all})
	}
	for _, p := range local {
		rule(loopback4(), toPort(p), led(port))
	}
	rule(loopback4(), accepted())
	rule(loopback6(), accepted())
	rule(toPort(53), accepted())
	rule(led(port))
	if err := c.Flush(); err != nil {
		return fmt.Errorf("packet rules: %w", err)
	}
	return nil
}

func equal(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

func tcp() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal([]byte{unix.IPPROTO_TCP})}
}

// loopback4 is 127.0.0.0/8: the destination stands at byte 16 of the header.
func loopback4() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal([]byte{unix.NFPROTO_IPV4}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 1}, equal([]byte{127}),
	}
}

// loopback6 is ::1: the destination stands at byte 24 of the header.
func loopback6() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal([]byte{unix.NFPROTO_IPV6}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 24, Len: 16}, equal(append(make([]byte, 15), 1)),
	}
}

func toPort(p uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, equal(binaryutil.BigEndian.PutUint16(p)),
	}
}

func accepted() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }

func led(port uint16) []expr.Any {
	return []expr.Any{&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)}, &expr.Redir{RegisterProtoMin: 1}}
}
