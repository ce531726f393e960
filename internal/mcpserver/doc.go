// Package mcpserver offers sandboxes to an agent as tools of the Model Context Protocol: at most ten, each with a short
// text for the model and the same facts as a structure.
//
// It stands on the client of a Paddock server, and decides nothing that the server decides: who may do what, and how much.
// It narrows: an agent gets no more than the [Offer] of its user, and of a user's own server it reaches the sandboxes that
// were made with this offer alone. What an agent writes is hostile input, and so is what a sandbox answers.
package mcpserver
