// Package serve has the commands that open the state of a server: serve, tenant, key
// and usage.
package serve
