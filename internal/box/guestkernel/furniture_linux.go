package guestkernel

import (
	"encoding/json"
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
)

// furniture is what the agent makes in the private layer over the file of an image. The box's init cannot do it,
// because nobody but the guest kernel mounts the image.
type furniture struct {
	user guest.User
	list []guestinit.Piece
}

// take takes over a step of building the file tree, if it concerns no mount of the spec.
func (f *furniture) take(m boxinit.Mount) bool {
	p := guestinit.Piece{Path: m.Target, Mode: m.Mode}
	switch m.Kind {
	case boxinit.MountDir:
		p.Kind = guestinit.PieceDir
		p.Keep = p.Path != f.user.Home
		if !p.Keep {
			p.UID, p.GID = f.user.UID, f.user.GID
		}
	case boxinit.MountFile:
		p.Kind, p.Text = guestinit.PieceFile, m.Source
	case boxinit.MountReplace:
		p.Kind, p.Text, p.Old = guestinit.PieceFile, m.Source, true
	case boxinit.MountAppend:
		p.Kind, p.Text, p.Old = guestinit.PieceAppend, m.Source, true
	default:
		return false
	}
	f.list = append(f.list, p)
	return true
}

func (f *furniture) text() (string, error) {
	data, err := json.Marshal(f.list)
	if err != nil {
		return "", err
	}
	if len(data) > guestinit.MaxFurniture {
		return "", fmt.Errorf("a box has %d bytes of own files, the most are %d", len(data), guestinit.MaxFurniture)
	}
	return string(data), nil
}
