// Package e2b implements the API of E2B on sandboxes of Paddock, so that programs written
// for E2B's SDKs run here unmodified. It only translates. A driver with lease terms makes
// the sandboxes, a function identifies the callers, and a store keeps the state.
//
// # Callers
//
// There are three kinds of callers:
//
//   - Callers of the control plane have a key of a tenant. Each call uses the driver of that
//     tenant, so it sees only its own sandboxes and templates. An object of another tenant
//     gets the same answer as one that never existed.
//   - Callers of a sandbox's data plane have no key. They name the sandbox by host or header
//     and send its access token, which the handler of the port checks. A token gives access
//     to one sandbox while it exists, and to nothing of the control plane. As in E2B, ports
//     of the guest are open to everyone who reaches the server, unless the sandbox was made
//     with a traffic token.
//   - Users of signed URLs name no sandbox. The sandbox is found by trying the token of each
//     existing sandbox, so a signature is as strong as the token that made it.
//
// # Defences
//
// Keys and tokens are compared in constant time and never logged. A caller's ID, template
// name or page token is only looked up, and never becomes a part of a path. Bodies, headers
// of rules, uploads and logs are bounded. The answer of a guest's port cannot pass for an
// answer of the control plane, because the host or the routing header decides before any
// path. When a sandbox dies, its streams are cut, so that no partial answer passes for a
// complete one.
package e2b
