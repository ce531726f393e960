package boxinit

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// makeLink makes the only interface of the box's network namespace. The holder of the TUN
// descriptor carries all of its packets. It is closed here.
func (p *initProcess) makeLink(files *Files) (err error) {
	p.step = "make the link"
	tun := files.One(FileTUN)
	if tun == nil { // the host's tree is still visible
		if tun, err = sys.OpenTUN(); err != nil {
			return err
		}
	}
	defer tun.Close()
	link := sys.Link{Name: LinkName, MTU: LinkMTU, Addresses: []netip.Addr{netip.MustParseAddr(Address4), netip.MustParseAddr(Address6)}}
	if err := link.Make(tun); err != nil {
		return err
	}
	return p.giveLink(tun)
}

// giveLink sends the host its end of the link.
func (p *initProcess) giveLink(theirs *os.File) error {
	data, err := json.Marshal(Report{Link: true})
	if err != nil {
		return err
	}
	if err := p.control.Send(data, theirs); err != nil {
		return fmt.Errorf("give the host its link: %w", err)
	}
	return nil
}
