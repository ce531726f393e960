// Package guestpb is the wire format between host and guest, generated from
// guest.proto. It leaves internal/guest and internal/guestclient nowhere.
package guestpb

//go:generate ./generate.sh
