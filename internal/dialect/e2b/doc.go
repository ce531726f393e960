// Package e2b speaks the API of E2B to sandboxes of Paddock, so that programs
// written for its SDKs run here unmodified. It translates and nothing else: what
// makes sandboxes is a driver with terms, who calls is told by a function, and what
// it remembers is kept in a store that is handed to it.
//
// The boundary. Three kinds of callers reach the handler:
//
//   - of the control plane, with a key of a tenant: each call goes through that
//     tenant's own driver, so it sees its own sandboxes and templates, and another's
//     are answered in the words of one that never was;
//   - of a sandbox's data plane, without a key: they name the sandbox by host or
//     header, and show its access token, which the box's own handler asks for. A
//     token opens one sandbox, as long as it lives, and nothing of the control
//     plane. Ports of the guest are open to everyone who reaches the server, unless
//     the sandbox was made with a traffic token: so E2B has it;
//   - of signed URLs, which name neither: the sandbox is found by trying each live
//     token, so that a signature is worth as much as the token made it.
//
// Attacks that are answered here: keys and tokens are compared in constant time and
// never logged; an ID, a template's name or a page token of a caller is only ever
// looked up, never part of a path; bodies, headers of rules, uploads and logs are
// capped; an answer of a guest's port cannot become an answer of the control plane,
// as the host or the routing header decides before any path; a sandbox that died
// cuts its streams, so that no half of an answer is taken for a whole.
package e2b
