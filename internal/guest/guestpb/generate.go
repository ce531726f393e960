// Package guestpb defines the messages and the RPC service between host and guest agent, generated
// from guest.proto. Only packages that serve an agent or call one import it.
package guestpb

//go:generate ./generate.sh
