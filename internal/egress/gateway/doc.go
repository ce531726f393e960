// Package gateway is the gateway process of one sandbox. [Main] confines the process and serves its owner's messages; a
// [Gateway] joins the parts: decide judges what the sandbox sends over its link, netstack dials it, inspect reads it
// where a rule says so, and the owner is told each decision.
//
// Everything that lives (connections, tunnels, requests, flows of datagrams) is in one list. It is added before it is
// judged, and judged again whenever the rules change, so that nothing goes on that is no longer allowed.
package gateway
